// What max_pool and avg_pool share.
#pragma once

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/compute/shapes.h"

namespace leeway {

// INVALID_ARGUMENT if the window is larger than the image.
absl::StatusOr<PoolShape> MakePoolShape(const v1::Pool& config, const ImageShape& input);

}  // namespace leeway
