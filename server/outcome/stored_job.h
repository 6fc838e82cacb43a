// Job files beside a run, in any kind of storage.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "config/job.h"

namespace leeway {

// Like LoadPlacedJob, but also for s3://BUCKET/KEY.
absl::StatusOr<PlacedJob> LoadStoredJob(const std::string& location, const JobOverrides& overrides);

}  // namespace leeway
