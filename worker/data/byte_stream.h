// Reads bytes in order, so that a caller does not have to keep a whole file in memory.
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
  // Fills `out`, and returns the number of bytes read. It is less than out.size() only at the end.
  virtual absl::StatusOr<size_t> Read(std::span<uint8_t> out) = 0;
  // Makes the next Read start at the first byte again.
  virtual absl::Status Rewind() = 0;
};

}  // namespace leeway
