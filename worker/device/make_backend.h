// Which backend a job gets.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/compute/backend.h"

namespace leeway {

// The backend for `workers.device` with `workers.threads`. RESOURCE_EXHAUSTED if threads cannot be
// started.
absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(const v1::Workers& workers);

}  // namespace leeway
