// A stream of bytes that a test has made up.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "worker/data/byte_stream.h"

namespace leeway {

class MemoryStream final : public ByteStream {
 public:
  explicit MemoryStream(std::vector<uint8_t> bytes) : bytes_(std::move(bytes)) {}

  absl::StatusOr<size_t> Read(std::span<uint8_t> out) override {
    const size_t count = std::min(out.size(), bytes_.size() - at_);
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(at_), count, out.begin());
    at_ += count;
    return count;
  }
  absl::Status Rewind() override {
    at_ = 0;
    return absl::OkStatus();
  }

 private:
  const std::vector<uint8_t> bytes_;
  size_t at_ = 0;
};

// Returns everything that follows in `stream`.
inline absl::StatusOr<std::vector<uint8_t>> ReadAll(ByteStream& stream) {
  std::vector<uint8_t> all;
  while (true) {
    const size_t old = all.size();
    constexpr size_t kPiece = 1000;
    all.resize(old + kPiece);
    absl::StatusOr<size_t> count = stream.Read(std::span(all).subspan(old));
    if (!count.ok()) return count.status();
    all.resize(old + *count);
    if (*count < kPiece) return all;
  }
}

}  // namespace leeway
