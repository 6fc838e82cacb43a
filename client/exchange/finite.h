// Checks whether what a worker is about to send is finite.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// The advice for values or losses that are not finite.
inline constexpr char kDivergedAdvice[] =
    "; training has diverged: try a smaller learning rate, or warm-up";

// Returns a text such as "the gradient of dense_0/weight[3] is inf" for the first of `values` that
// is not finite. `values` are `what`, from element `first` on. Empty if all values are finite.
std::string NotFinite(const v1::ModelSchema& schema, const char* what, uint64_t first,
                      std::span<const float> values);

// OUT_OF_RANGE, naming the tensor, if some of `values` are not finite. `values` are `what`, from
// element `first` on.
absl::Status CheckFinite(const v1::ModelSchema& schema, const char* what, uint64_t first,
                         std::span<const float> values);

}  // namespace leeway
