// The limits on the size of a model. Within these limits, sizes are computed without overflow.
#pragma once

#include <cstdint>

namespace leeway {

// The largest number of floats of one example at any layer's output: 1 GiB.
inline constexpr uint64_t kMaxExampleElements = uint64_t{1} << 28;
// The largest number of floats of one tensor, and of all tensors together: 16 GiB.
inline constexpr uint64_t kMaxModelElements = uint64_t{1} << 32;
// The largest number of examples of one batch. The job's limit on data.batch_size is lower.
inline constexpr uint64_t kMaxBatchExamples = uint64_t{1} << 24;
// The largest number of floats of the activations, gradients and scratch of one batch: 64 GiB.
inline constexpr uint64_t kMaxWorkspaceElements = uint64_t{1} << 34;

}  // namespace leeway
