// Loads job files from any kind of storage.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "config/job.h"

namespace leeway {

// Does the same as LoadPlacedJob, but also accepts s3://BUCKET/KEY.
absl::StatusOr<PlacedJob> LoadStoredJob(const std::string& location, const JobOverrides& overrides);

}  // namespace leeway
