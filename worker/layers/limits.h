// The limits on the size of a model. Sizes within them are computed without overflow.
#pragma once

#include <cstdint>

namespace leeway {

// The floats of one example at any layer's output: 1 GiB.
inline constexpr uint64_t kMaxExampleElements = uint64_t{1} << 28;
// The floats of one tensor, and of all tensors together: 16 GiB.
inline constexpr uint64_t kMaxModelElements = uint64_t{1} << 32;
// The examples of one batch; the limit of data.batch_size is lower.
inline constexpr uint64_t kMaxBatchExamples = uint64_t{1} << 24;
// The floats of the activations, gradients and scratch of one batch: 64 GiB.
inline constexpr uint64_t kMaxWorkspaceElements = uint64_t{1} << 34;

}  // namespace leeway
