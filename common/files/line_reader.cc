#include "common/files/line_reader.h"

#include <algorithm>
#include <utility>

#include "common/status.h"

namespace leeway {
namespace {

constexpr uint64_t kChunkBytes = 256 << 10;

}  // namespace

LineReader::LineReader(FileReader file, size_t line_bytes_max)
    : file_(std::move(file)), line_bytes_max_(line_bytes_max) {}

absl::StatusOr<LineReader> LineReader::Open(const std::string& path, size_t line_bytes_max) {
  ASSIGN_OR_RETURN(FileReader file, FileReader::Open(path));
  return LineReader(std::move(file), line_bytes_max);
}

absl::StatusOr<bool> LineReader::Fill() {
  buffer_.erase(0, std::exchange(taken_, 0));
  const uint64_t more = std::min(kChunkBytes, file_.size() - position_);
  if (more == 0) return false;
  const size_t held = buffer_.size();
  buffer_.resize(held + more);
  const absl::Status status =
      file_.ReadAt(position_, {reinterpret_cast<uint8_t*>(buffer_.data()) + held, more});
  if (!status.ok()) {
    buffer_.clear();
    position_ = file_.size();
    return status;
  }
  position_ += more;
  return true;
}

absl::StatusOr<std::optional<LineReader::Line>> LineReader::Next() {
  Line line{.text = {}, .number = ++number_};
  beginning_.clear();
  size_t searched = taken_;
  while (true) {
    const size_t end = buffer_.find('\n', searched);
    line.complete = end != std::string::npos;
    const size_t length = (line.complete ? end : buffer_.size()) - taken_;
    if (length > line_bytes_max_) {
      line.too_long = true;
      if (beginning_.empty()) beginning_ = buffer_.substr(taken_, line_bytes_max_);
    }
    if (line.complete) {
      line.text = std::string_view(buffer_).substr(taken_, length);
      taken_ = end + 1;
      break;
    }
    // Keep only the beginning of a line that is too long.
    if (line.too_long) buffer_.resize(taken_ = 0);
    searched = buffer_.size() - taken_;
    ASSIGN_OR_RETURN(const bool more, Fill());
    if (more) continue;
    if (buffer_.empty() && !line.too_long) return std::nullopt;
    line.text = buffer_;
    taken_ = buffer_.size();
    break;
  }
  if (line.too_long) line.text = beginning_;
  return line;
}

}  // namespace leeway
