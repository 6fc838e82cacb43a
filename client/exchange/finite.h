// Whether what a worker is about to send is finite.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// What to do about a value or a loss that is not.
inline constexpr char kDivergedAdvice[] =
    "; training has diverged: try a smaller learning rate, or warm-up";

// "the gradient of dense_0/weight[3] is inf": the first of `values`, which are `what` from element
// `first` on, that is not finite; empty: all are.
std::string NotFinite(const v1::ModelSchema& schema, const char* what, uint64_t first,
                      std::span<const float> values);

// OUT_OF_RANGE, naming the tensor, if some of `values`, which are `what` from element `first` on,
// are not finite.
absl::Status CheckFinite(const v1::ModelSchema& schema, const char* what, uint64_t first,
                         std::span<const float> values);

}  // namespace leeway
