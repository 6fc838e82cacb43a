// Files that exist as a whole or not at all. Each error names the path and the system's reason.
//
// Only regular files are read and replaced, also through symbolic links. A pipe, a device or a
// socket in place of a file is an error at once; no call waits on it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace leeway {

// Reads the whole file. RESOURCE_EXHAUSTED if it has more than `max_bytes`.
absl::StatusOr<std::string> ReadFile(const std::string& path, uint64_t max_bytes);

enum class WriteTo {
  kRegularFile,
  // Writes where a shell's `>` would, for paths from the command line. Besides regular files, the
  // target may be a terminal, a pipe with a reader or /dev/null. These are not replaced, so after
  // an error they may have got a part of the content.
  kAnything,
};

// After OK the file at `path` has this content, even after a power cut. After an error, or after a
// crash at any point, the file at `path` is unchanged. Exception: if only syncing the folder fails,
// the file already has the new content.
absl::Status WriteFileAtomically(const std::string& path, std::string_view content,
                                 WriteTo to = WriteTo::kRegularFile);

// OK if something can be written at `path` (WriteTo::kAnything), or if `path` is empty because no
// output is wanted. Call it before work that takes minutes, not after it.
absl::Status CheckWritable(const std::string& path);

// Makes the folder and its parents, durably. OK if the folder exists.
absl::Status MakeFolders(const std::string& path);

// Removes a file, or a folder with all its content. OK if the path does not exist.
absl::Status RemoveTree(const std::string& path);

// Writes a large file as WriteFileAtomically does: under a temporary name in the same folder, with
// an fsync, a rename, and an fsync of the folder. Not thread-safe. Two writers of one path do not
// disturb each other: the last one to finish wins.
class FileWriter {
 public:
  static absl::StatusOr<FileWriter> Create(const std::string& path,
                                           WriteTo to = WriteTo::kRegularFile);

  FileWriter(FileWriter&& other) noexcept;
  FileWriter& operator=(FileWriter&&) = delete;
  // Without a successful Finish, removes all that was written.
  ~FileWriter();

  // After an error all later calls fail, too.
  absl::Status Append(std::span<const uint8_t> bytes);
  absl::Status Append(std::string_view bytes);
  // Call it once.
  absl::Status Finish();

 private:
  FileWriter(std::string path, std::string temporary, int file);
  absl::Status Write(const uint8_t* data, size_t size);
  absl::Status Flush();
  absl::Status Fail(std::string_view doing);

  const std::string path_;
  // Empty after the rename, and for a target that is written in place.
  std::string temporary_;
  int file_ = -1;
  // Gathers small appends, which are written together.
  std::string buffer_;
  absl::Status status_;
};

// Reads a file at any position. Thread-safe.
class FileReader {
 public:
  static absl::StatusOr<FileReader> Open(const std::string& path);
  FileReader(FileReader&& other) noexcept;
  FileReader& operator=(FileReader&&) = delete;
  ~FileReader();

  const std::string& path() const { return path_; }
  // The size at the time of opening, in bytes.
  uint64_t size() const { return size_; }
  // Fills `target` from byte `position` on. DATA_LOSS if the file ends before that.
  absl::Status ReadAt(uint64_t position, std::span<uint8_t> target) const;

 private:
  FileReader(std::string path, int file, uint64_t size);

  const std::string path_;
  int file_;
  const uint64_t size_;
};

// Returns the bytes of trivially copyable values as they are in memory.
template <typename T>
std::span<const uint8_t> BytesOf(std::span<const T> values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size_bytes()};
}
inline std::span<const uint8_t> BytesOf(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace leeway
