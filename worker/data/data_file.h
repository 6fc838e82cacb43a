// The files of the data folder (worker/data/data_folder.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/data/byte_stream.h"
#include "worker/data/file_content.h"

namespace leeway {

// An open file. Its bytes are those that were packed, if its content is gzip.
struct DataFile {
  // As errors name it.
  std::string path;
  std::unique_ptr<ByteStream> bytes;
};

// "PATH: byte 12: WHAT", as INVALID_ARGUMENT.
absl::Status BadByte(const DataFile& file, uint64_t byte, absl::string_view what);

// `name` as PathOfData takes it. Nothing of the content is held. Errors, here and while it is read,
// name the full path: INVALID_ARGUMENT for a relative name that has "..", NOT_FOUND saying what to
// fetch from where, DATA_LOSS for damaged gzip, RESOURCE_EXHAUSTED beyond kMaxFileBytes; of a file
// in an object store also as PathHere.
absl::StatusOr<DataFile> OpenDataFile(const std::string& data_dir, const std::string& name);

// A file as memory.
struct MappedFile {
  // As errors name it.
  std::string path;
  FileContent content;
};

// The same file, mapped, of whatever size; what was packed by gzip is unpacked into memory.
// Errors are those of OpenDataFile.
absl::StatusOr<MappedFile> MapDataFile(const std::string& data_dir, const std::string& name);
// The first `max_bytes` of the file as it is, or all of it, read into memory; it may be empty.
absl::StatusOr<MappedFile> ReadDataFile(const std::string& data_dir, const std::string& name,
                                        uint64_t max_bytes);

}  // namespace leeway
