#include "worker/data/gunzip.h"

#include <algorithm>

#include <zlib.h>

#include "common/status.h"

namespace leeway {
namespace {

// zlib counts its input and output in 32 bits.
constexpr size_t kMaxChunk = size_t{1} << 30;
// Deflate cannot pack better.
constexpr uint64_t kMaxRatio = 1032;
constexpr uint64_t kMinBuffer = 4096;

class Inflater {
 public:
  Inflater() { ok_ = inflateInit2(&stream_, 16 + MAX_WBITS) == Z_OK; }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  bool ok() const { return ok_; }
  z_stream& stream() { return stream_; }

 private:
  z_stream stream_{};
  bool ok_ = false;
};

// The last four bytes hold the size of the last member modulo 2^32: usually of everything, so that
// one allocation does. It is a hint and never believed.
uint64_t GuessSize(std::span<const uint8_t> packed, uint64_t max_bytes) {
  uint64_t guess = 0;
  for (size_t i = 1; i <= 4 && i <= packed.size(); ++i)
    guess = guess << 8 | packed[packed.size() - i];
  // One more, because a full buffer would be grown before the end of the stream is seen.
  guess = std::min(guess + 1, packed.size() * kMaxRatio);
  return std::max(kMinBuffer, std::min(guess, max_bytes + 1));
}

}  // namespace

bool IsGzip(std::span<const uint8_t> bytes) {
  return bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

absl::StatusOr<std::vector<uint8_t>> Gunzip(std::span<const uint8_t> packed,
                                            const std::string& path, uint64_t max_bytes) {
  Inflater inflater;
  if (!inflater.ok())
    return absl::ResourceExhaustedError(absl::StrCat(path, ": no memory to unpack"));
  z_stream& z = inflater.stream();
  std::vector<uint8_t> out(GuessSize(packed, max_bytes));
  size_t read = 0;
  size_t written = 0;
  while (true) {
    if (written == out.size()) {
      if (written > max_bytes) break;
      out.resize(std::min<uint64_t>(out.size() * 2, std::max(max_bytes + 1, kMinBuffer)));
    }
    z.next_in = const_cast<Bytef*>(packed.data() + read);
    z.avail_in = static_cast<uInt>(std::min(packed.size() - read, kMaxChunk));
    z.next_out = out.data() + written;
    z.avail_out = static_cast<uInt>(std::min(out.size() - written, kMaxChunk));
    const uInt in = z.avail_in, room = z.avail_out;
    const int result = inflate(&z, Z_NO_FLUSH);
    read += in - z.avail_in;
    written += room - z.avail_out;
    if (result == Z_STREAM_END) {
      if (read == packed.size()) break;
      inflateReset(&z);  // another member
    } else if (result == Z_BUF_ERROR || (result == Z_OK && in == 0 && room == z.avail_out)) {
      return absl::DataLossError(
          absl::StrCat(path, ": byte ", read, ": the gzip file ends too early; fetch it again"));
    } else if (result != Z_OK) {
      return absl::DataLossError(absl::StrCat(path, ": byte ", read, ": damaged gzip content (",
                                              z.msg == nullptr ? "unknown" : z.msg,
                                              "); fetch it again"));
    }
  }
  if (written > max_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(path, ": unpacks to more than the ", max_bytes,
                                                     " bytes that a data file may have"));
  }
  out.resize(written);
  return out;
}

}  // namespace leeway
