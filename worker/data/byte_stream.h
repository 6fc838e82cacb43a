// Reads bytes in order, so that no caller must hold a whole file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace leeway {

// Not thread-safe. Errors name the file and the byte.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Fills `out` and returns the number of bytes. It is less than out.size() only at the end.
  virtual absl::StatusOr<size_t> Read(std::span<uint8_t> out) = 0;
  // The next Read starts at the first byte again.
  virtual absl::Status Rewind() = 0;
};

}  // namespace leeway
