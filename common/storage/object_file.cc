#include "common/storage/object_file.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status.h"

namespace leeway {
namespace {

constexpr uint64_t kWindowBytes = 8 << 20;

}  // namespace

absl::Status ObjectFile::Fill(uint64_t position) const {
  window_.resize(std::min(kWindowBytes, info_.size - position));
  begin_ = position;
  absl::Status status = client_->Get(key_, info_.etag, position, window_);
  if (!status.ok()) window_.clear();
  // Both errors mean that the object was replaced after it was opened.
  if (absl::IsNotFound(status) || absl::IsOutOfRange(status)) {
    return absl::DataLossError(status.message());
  }
  return status;
}

std::string ObjectFile::md5() const {
  const absl::string_view tag = absl::StripSuffix(absl::StripPrefix(info_.etag, "\""), "\"");
  const bool hex = std::all_of(tag.begin(), tag.end(), absl::ascii_isxdigit);
  return hex && tag.size() == 32 && !info_.encrypted ? absl::AsciiStrToLower(tag) : "";
}

absl::Status ObjectFile::ReadAt(uint64_t position, std::span<uint8_t> target) const {
  if (position > info_.size || target.size() > info_.size - position) {
    return absl::DataLossError(absl::StrCat("reading '", location_, "': the file ends at byte ",
                                            info_.size, ", but the caller asked for ",
                                            target.size(), " bytes from byte ", position));
  }
  MutexLock lock(mutex_);
  while (!target.empty()) {
    if (position < begin_ || position - begin_ >= window_.size()) RETURN_IF_ERROR(Fill(position));
    const uint64_t offset = position - begin_;
    const size_t bytes = std::min<uint64_t>(target.size(), window_.size() - offset);
    std::copy_n(window_.data() + offset, bytes, target.data());
    position += bytes;
    target = target.subspan(bytes);
  }
  return absl::OkStatus();
}

}  // namespace leeway
