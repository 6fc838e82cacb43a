// The bytes of a whole file in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

namespace leeway {

// Immutable. A move keeps the address of the bytes, except of bytes that were unpacked into a short
// string.
class FileContent {
 public:
  // Holds bytes that were unpacked.
  explicit FileContent(std::string unpacked) : unpacked_(std::move(unpacked)) {}
  // Maps the `size` (> 0) bytes of the open file `descriptor`. The caller may close the descriptor
  // afterwards. The bytes are read when they are first accessed. The file must not become shorter
  // while it is mapped, because reading beyond its end kills the process with SIGBUS. Errors name
  // `path`.
  static absl::StatusOr<FileContent> Map(int descriptor, size_t size, const std::string& path);

  ~FileContent();
  FileContent(FileContent&& other) noexcept;
  FileContent& operator=(FileContent&& other) noexcept;

  std::string_view bytes() const {
    return mapped_ != nullptr ? std::string_view(mapped_, mapped_size_) : unpacked_;
  }
  // Returns the number of bytes of memory that this object alone holds. Mapped pages belong to the
  // operating system and do not count.
  uint64_t held() const { return unpacked_.size(); }

 private:
  FileContent(const char* mapped, size_t size) : mapped_(mapped), mapped_size_(size) {}

  std::string unpacked_;
  const char* mapped_ = nullptr;
  size_t mapped_size_ = 0;
};

}  // namespace leeway
