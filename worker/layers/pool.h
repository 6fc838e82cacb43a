// The shape of max_pool and avg_pool.
#pragma once

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/compute/shapes.h"

namespace leeway {

// Returns INVALID_ARGUMENT if a number is outside its range, or the window is larger than the image
// with its padding.
absl::StatusOr<PoolShape> MakePoolShape(const v1::Pool& config, const ImageShape& input);

}  // namespace leeway
