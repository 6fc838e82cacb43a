#include "worker/data/gunzip.h"

#include <algorithm>
#include <utility>

#include "common/status.h"

namespace leeway {
namespace {

constexpr size_t kChunk = 64 << 10;
// The largest number of bytes of one call, because zlib counts its output in 32 bits.
constexpr size_t kMaxOut = size_t{1} << 30;
// zlib's windowBits argument for gzip with the largest window.
constexpr int kGzip = 16 + MAX_WBITS;

}  // namespace

GunzipStream::GunzipStream(std::unique_ptr<ByteStream> packed, std::string path, uint64_t max_bytes)
    : packed_(std::move(packed)), path_(std::move(path)), max_bytes_(max_bytes), chunk_(kChunk) {
  ready_ = inflateInit2(&zlib_, kGzip) == Z_OK;
}

GunzipStream::~GunzipStream() { inflateEnd(&zlib_); }

absl::Status GunzipStream::Rewind() {
  RETURN_IF_ERROR(packed_->Rewind());
  if (ready_) inflateReset(&zlib_);
  zlib_.avail_in = 0;
  ended_ = false;
  packed_read_ = unpacked_ = 0;
  return absl::OkStatus();
}

absl::Status GunzipStream::Refill() {
  if (zlib_.avail_in > 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const size_t count, packed_->Read(chunk_));
  zlib_.next_in = chunk_.data();
  zlib_.avail_in = static_cast<uInt>(count);
  packed_read_ += count;
  return absl::OkStatus();
}

absl::Status GunzipStream::SkipPadding() {
  while (true) {
    RETURN_IF_ERROR(Refill());
    if (zlib_.avail_in == 0) return absl::OkStatus();
    for (; zlib_.avail_in > 0 && *zlib_.next_in == 0; --zlib_.avail_in) ++zlib_.next_in;
    if (zlib_.avail_in > 0) return absl::OkStatus();
  }
}

absl::Status GunzipStream::Judge(int result, bool moved) {
  if (result == Z_STREAM_END) {
    RETURN_IF_ERROR(SkipPadding());
    ended_ = zlib_.avail_in == 0;
    if (!ended_) inflateReset(&zlib_);  // Another member follows.
    return absl::OkStatus();
  }
  if (result == Z_BUF_ERROR || (result == Z_OK && !moved)) {
    return absl::DataLossError(absl::StrCat(path_, ": byte ", PackedByte(),
                                            ": the gzip file is truncated; fetch it again"));
  }
  if (result == Z_OK) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(path_, ": byte ", PackedByte(), ": damaged gzip content (",
                   zlib_.msg == nullptr ? "unknown" : zlib_.msg, "); fetch it again"));
}

absl::StatusOr<size_t> GunzipStream::Read(std::span<uint8_t> out) {
  if (!ready_)
    return absl::ResourceExhaustedError(
        absl::StrCat(path_, ": not enough memory to unpack the file"));
  size_t written = 0;
  while (written < out.size() && !ended_) {
    RETURN_IF_ERROR(Refill());
    zlib_.next_out = out.data() + written;
    zlib_.avail_out = static_cast<uInt>(std::min(out.size() - written, kMaxOut));
    const uInt in = zlib_.avail_in, room = zlib_.avail_out;
    const int result = inflate(&zlib_, Z_NO_FLUSH);
    const size_t given = room - zlib_.avail_out;
    written += given;
    unpacked_ += given;
    RETURN_IF_ERROR(Judge(result, given > 0 || in != zlib_.avail_in));
    if (unpacked_ > max_bytes_) {
      return absl::ResourceExhaustedError(absl::StrCat(path_, ": byte ", PackedByte(),
                                                       ": unpacks to more than the ", max_bytes_,
                                                       " bytes that a data file may have"));
    }
  }
  return written;
}

}  // namespace leeway
