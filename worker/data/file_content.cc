#include "worker/data/file_content.h"

#include <cerrno>

#include <sys/mman.h>

namespace leeway {

absl::StatusOr<FileContent> FileContent::Map(int descriptor, size_t size, const std::string& path) {
  void* const mapped = mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
  if (mapped == MAP_FAILED) {
    return absl::ErrnoToStatus(errno, absl::StrCat(path, ": mapping ", size, " bytes"));
  }
  return FileContent(static_cast<const char*>(mapped), size);
}

FileContent::~FileContent() {
  if (mapped_ != nullptr) munmap(const_cast<char*>(mapped_), mapped_size_);
}

FileContent::FileContent(FileContent&& other) noexcept
    : unpacked_(std::move(other.unpacked_)),
      mapped_(std::exchange(other.mapped_, nullptr)),
      mapped_size_(std::exchange(other.mapped_size_, 0)) {}

FileContent& FileContent::operator=(FileContent&& other) noexcept {
  std::swap(unpacked_, other.unpacked_);
  std::swap(mapped_, other.mapped_);
  std::swap(mapped_size_, other.mapped_size_);
  return *this;
}

}  // namespace leeway
