// Bytes that come one after the other: nobody has to hold a whole file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace leeway {

// Not thread-safe. Errors name the file and its byte.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Fills `out`; fewer bytes than that only at the end.
  virtual absl::StatusOr<size_t> Read(std::span<uint8_t> out) = 0;
  // The next Read starts at the first byte again.
  virtual absl::Status Rewind() = 0;
};

}  // namespace leeway
