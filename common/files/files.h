// Writes files that exist as a whole or not at all, and reads files. Each error names the path and
// the operating system's reason.
//
// These functions read and replace only regular files, also through symbolic links. If the path is
// a pipe, a device or a socket, they return an error at once and never wait.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace leeway {

// Reads the whole file. Returns RESOURCE_EXHAUSTED if the file has more than `max_bytes`.
absl::StatusOr<std::string> ReadFile(const std::string& path, uint64_t max_bytes);

enum class WriteTo {
  kRegularFile,
  // For paths from the command line: any target that a shell's `>` accepts. In addition to regular
  // files, the target may be a terminal, a pipe with a reader or /dev/null. Such a target is not
  // replaced, so it may have received a part of the content before an error.
  kAnything,
};

// Writes a file. If the result is OK, the file at `path` has this content, even after a power cut.
// After an error, or after a crash during the call, the file at `path` is unchanged, with one
// exception: if only the sync of the folder fails, the file already has the new content.
absl::Status WriteFileAtomically(const std::string& path, std::string_view content,
                                 WriteTo to = WriteTo::kRegularFile);

// Returns OK if a file can be written at `path` (WriteTo::kAnything), or if `path` is empty because
// the user wants no output. Call this function before work that takes minutes, so that a wrong path
// is reported at once.
absl::Status CheckWritable(const std::string& path);

// Makes the folder and its parents, durably. Returns OK if the folder exists already.
absl::Status MakeFolders(const std::string& path);

// Removes a file, or a folder with all its content. Returns OK if the path does not exist.
absl::Status RemoveTree(const std::string& path);

// Writes a large file as WriteFileAtomically does: under a temporary name in the same folder, with
// an fsync, a rename, and an fsync of the folder. Not thread-safe. Two writers of one path do not
// disturb each other. The file has the content of the last writer to finish.
class FileWriter {
 public:
  static absl::StatusOr<FileWriter> Create(const std::string& path,
                                           WriteTo to = WriteTo::kRegularFile);

  FileWriter(FileWriter&& other) noexcept;
  FileWriter& operator=(FileWriter&&) = delete;
  // Removes the temporary file, unless Finish has succeeded.
  ~FileWriter();

  // After an error all later calls fail, too.
  absl::Status Append(std::span<const uint8_t> bytes);
  absl::Status Append(std::string_view bytes);
  // Makes the file appear under its name. Call this function once.
  absl::Status Finish();

 private:
  FileWriter(std::string path, std::string temporary, int file);
  absl::Status Write(const uint8_t* data, size_t size);
  absl::Status Flush();
  absl::Status Fail(std::string_view doing);

  const std::string path_;
  // The temporary name. Empty after the rename, and if the target is written in place.
  std::string temporary_;
  int file_ = -1;
  // Small appends, which are written together.
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
  // Returns the size at the time of opening, in bytes.
  uint64_t size() const { return size_; }
  // Fills `target` from byte `position` on. Returns DATA_LOSS if the file ends before that.
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
