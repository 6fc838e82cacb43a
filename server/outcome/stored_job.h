// Job files that lie beside a run, in whatever storage that is.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "config/job.h"

namespace leeway {

// As LoadPlacedJob, also of s3://BUCKET/KEY.
absl::StatusOr<PlacedJob> LoadStoredJob(const std::string& location, const JobOverrides& overrides);

}  // namespace leeway
