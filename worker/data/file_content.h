// A whole file as memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

namespace leeway {

// Immutable; moves leave the bytes where they are, unless the source is an unpacked short text.
class FileContent {
 public:
  // Bytes that were unpacked.
  explicit FileContent(std::string unpacked) : unpacked_(std::move(unpacked)) {}
  // The `size` (> 0) bytes of the open file `descriptor`, which may be closed then. They are read
  // when they are looked at. The file must stay as long as it is meanwhile: a process that reads
  // beyond the end of a file that has shrunk is killed by SIGBUS. Errors name `path`.
  static absl::StatusOr<FileContent> Map(int descriptor, size_t size, const std::string& path);

  ~FileContent();
  FileContent(FileContent&& other) noexcept;
  FileContent& operator=(FileContent&& other) noexcept;

  std::string_view bytes() const {
    return mapped_ != nullptr ? std::string_view(mapped_, mapped_size_) : unpacked_;
  }
  // Of memory that only this holds: what is mapped is the system's.
  uint64_t held() const { return unpacked_.size(); }

 private:
  FileContent(const char* mapped, size_t size) : mapped_(mapped), mapped_size_(size) {}

  std::string unpacked_;
  const char* mapped_ = nullptr;
  size_t mapped_size_ = 0;
};

}  // namespace leeway
