// Unpacks gzip (RFC 1952) piece by piece.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <zlib.h>

#include "worker/data/byte_stream.h"

namespace leeway {

// Reads the content of all gzip members of `packed`. The stream ends only when it has verified the
// members' checksums. It needs 64 KiB of memory and zlib's window, however large the unpacked file
// is. Errors name `path` and the byte of the packed file. Returns DATA_LOSS for truncated or
// damaged content, and RESOURCE_EXHAUSTED beyond `max_bytes` unpacked.
class GunzipStream final : public ByteStream {
 public:
  GunzipStream(std::unique_ptr<ByteStream> packed, std::string path, uint64_t max_bytes);
  ~GunzipStream() override;
  GunzipStream(const GunzipStream&) = delete;
  GunzipStream& operator=(const GunzipStream&) = delete;

  absl::StatusOr<size_t> Read(std::span<uint8_t> out) override;
  absl::Status Rewind() override;

 private:
  // Passes packed bytes to zlib, unless zlib still has unread bytes.
  absl::Status Refill();
  // Skips zeros after a member, such as the zeros that fill a tape's block. gzip skips them, too.
  absl::Status SkipPadding();
  // Acts on the `result` of inflate(). `moved` says whether the call consumed or produced bytes.
  absl::Status Judge(int result, bool moved);
  uint64_t PackedByte() const { return packed_read_ - zlib_.avail_in; }

  const std::unique_ptr<ByteStream> packed_;
  const std::string path_;
  const uint64_t max_bytes_;
  std::vector<uint8_t> chunk_;
  z_stream zlib_{};
  bool ready_ = false;
  bool ended_ = false;
  uint64_t packed_read_ = 0;
  uint64_t unpacked_ = 0;
};

}  // namespace leeway
