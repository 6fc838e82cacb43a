// Opens the files of the data folder (worker/data/data_folder.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/data/byte_stream.h"
#include "worker/data/file_content.h"

namespace leeway {

// An open file. If its content is gzip, `bytes` reads the unpacked bytes.
struct DataFile {
  // The file's name in errors.
  std::string path;
  std::unique_ptr<ByteStream> bytes;
};

// Returns INVALID_ARGUMENT with the message "PATH: byte 12: WHAT".
absl::Status BadByte(const DataFile& file, uint64_t byte, absl::string_view what);

// Opens the file `name`, which has the same form as for PathOfData. The content is not kept in
// memory. Errors of this function and of later reads name the full path:
// - INVALID_ARGUMENT: a relative name has "..".
// - NOT_FOUND: the file is absent; the message says what to fetch and from where.
// - DATA_LOSS: the gzip content is damaged.
// - RESOURCE_EXHAUSTED: the file has more than kMaxFileBytes.
// - Errors of PathHere, for a file in an object store.
absl::StatusOr<DataFile> OpenDataFile(const std::string& data_dir, const std::string& name);

// A whole file that is in memory.
struct MappedFile {
  // The file's name in errors.
  std::string path;
  FileContent content;
};

// Maps the file, which may have any size. Content packed by gzip is unpacked into memory, up to
// kMaxFileBytes. Returns the errors of OpenDataFile.
absl::StatusOr<MappedFile> MapDataFile(const std::string& data_dir, const std::string& name);
// Reads the first `max_bytes` of the file into memory, or all of the file if it has fewer bytes.
// The bytes are not unpacked. The file may be empty.
absl::StatusOr<MappedFile> ReadDataFile(const std::string& data_dir, const std::string& name,
                                        uint64_t max_bytes);

}  // namespace leeway
