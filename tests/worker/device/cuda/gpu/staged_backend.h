// A device whose memory, as its callers see it, is the host's: for tests that hand kernels the
// addresses of their own vectors. Each kernel's inputs are copied to the device, the kernel runs
// there, and its outputs are copied back.
#pragma once

#include <memory>

#include "worker/compute/backend.h"

namespace leeway::testing {

// Buffers lie on the device as they lie on the host, modulo 64 bytes; two operands that are one
// buffer stay one.
std::unique_ptr<Backend> MakeStagedBackend(std::unique_ptr<Backend> device);

}  // namespace leeway::testing
