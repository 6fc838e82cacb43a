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

// Returns a string such as "the gradient of dense_0/weight[3] is inf" for the first value that is
// not finite, or an empty string if all are finite. `what` names the vector, such as "the
// gradient", and `values` are its elements from `first` on.
std::string NotFinite(const v1::ModelSchema& schema, const char* what, uint64_t first,
                      std::span<const float> values);

// Returns OUT_OF_RANGE, naming the tensor, if a value is not finite. The arguments are those of
// NotFinite.
absl::Status CheckFinite(const v1::ModelSchema& schema, const char* what, uint64_t first,
                         std::span<const float> values);

}  // namespace leeway
