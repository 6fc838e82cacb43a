// What a model may be at most. Everything below them is computed without overflow.
#pragma once

#include <cstdint>

namespace leeway {

// Floats that one example may be at any layer's output: 1 GiB.
inline constexpr uint64_t kMaxExampleElements = uint64_t{1} << 28;
// Floats of one tensor, and of all together: 16 GiB.
inline constexpr uint64_t kMaxModelElements = uint64_t{1} << 32;
// Examples of one batch; data.batch_size is less.
inline constexpr uint64_t kMaxBatchExamples = uint64_t{1} << 24;
// Floats of the activations, gradients and scratch of one batch: 64 GiB.
inline constexpr uint64_t kMaxWorkspaceElements = uint64_t{1} << 34;

}  // namespace leeway
