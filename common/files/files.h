// Files that exist whole or not at all. Every error names the path and the system's reason.
//
// Only regular files are read and replaced, through symbolic links: a pipe, a device or a socket in
// a file's place is an error at once, never waited on.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace leeway {

// The whole file. RESOURCE_EXHAUSTED if it has more than `max_bytes`.
absl::StatusOr<std::string> ReadFile(const std::string& path, uint64_t max_bytes);

enum class WriteTo {
  kRegularFile,
  // Where a shell's `>` would put it, for what a user names on the command line: also into a
  // terminal, a pipe that somebody reads, /dev/null, which are not replaced. What goes there is not
  // whole or absent.
  kAnything,
};

// After OK the file is at `path` with this content, also after a power cut; after an error, or a
// crash at any point, `path` is as it was before; or has the new content already, if only syncing
// its folder has failed.
absl::Status WriteFileAtomically(const std::string& path, std::string_view content,
                                 WriteTo to = WriteTo::kRegularFile);

// An error unless something can be written at `path` (WriteTo::kAnything); OK for an empty one,
// where none is wanted. To be asked before what takes minutes, not after it.
absl::Status CheckWritable(const std::string& path);

// Makes the folder and those above it, durably. OK if it is there.
absl::Status MakeFolders(const std::string& path);

// Removes a file or a folder with all that is in it. OK if there is none.
absl::Status RemoveTree(const std::string& path);

// Writes a large file as WriteFileAtomically does: under a temporary name in the same folder, then
// fsync, rename, fsync of the folder. Not thread-safe. Two writers of one path do not disturb each
// other: the last to finish wins.
class FileWriter {
 public:
  static absl::StatusOr<FileWriter> Create(const std::string& path,
                                           WriteTo to = WriteTo::kRegularFile);

  FileWriter(FileWriter&& other) noexcept;
  FileWriter& operator=(FileWriter&&) = delete;
  // Without Finish, or after its failure, nothing of the file stays.
  ~FileWriter();

  // After an error every later call fails too.
  absl::Status Append(std::span<const uint8_t> bytes);
  absl::Status Append(std::string_view bytes);
  // Once.
  absl::Status Finish();

 private:
  FileWriter(std::string path, std::string temporary, int file);
  absl::Status Write(const uint8_t* data, size_t size);
  absl::Status Flush();
  absl::Status Fail(std::string_view doing);

  const std::string path_;
  // Empty once there is nothing to remove, and for what is written in place.
  std::string temporary_;
  int file_ = -1;
  // Small appends, written together.
  std::string buffer_;
  absl::Status status_;
};

// Reads a file at any place. Thread-safe.
class FileReader {
 public:
  static absl::StatusOr<FileReader> Open(const std::string& path);
  FileReader(FileReader&& other) noexcept;
  FileReader& operator=(FileReader&&) = delete;
  ~FileReader();

  const std::string& path() const { return path_; }
  // When it was opened.
  uint64_t size() const { return size_; }
  // Fills `target` from byte `position` on. DATA_LOSS if the file ends before.
  absl::Status ReadAt(uint64_t position, std::span<uint8_t> target) const;

 private:
  FileReader(std::string path, int file, uint64_t size);

  const std::string path_;
  int file_;
  const uint64_t size_;
};

// The bytes of trivially copyable values, as they are in memory.
template <typename T>
std::span<const uint8_t> BytesOf(std::span<const T> values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size_bytes()};
}
inline std::span<const uint8_t> BytesOf(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace leeway
