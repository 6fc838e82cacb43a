// A device whose callers use the host's memory, for tests that pass kernels the addresses of their
// own vectors. Each kernel's inputs are copied to the device, the kernel runs there, and its
// outputs are copied back.
#pragma once

#include <memory>

#include "worker/compute/backend.h"

namespace leeway::testing {

// A buffer's address on the device equals its address on the host modulo 64 bytes. Two operands
// that are one buffer stay one.
std::unique_ptr<Backend> MakeStagedBackend(std::unique_ptr<Backend> device);

}  // namespace leeway::testing
