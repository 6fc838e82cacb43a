// Storage for checkpoints and the files of a run, in folders or in an object store.
//
// The name of a file is its location: a path, or s3://BUCKET/KEY (docs/storage.md). StorageOf
// returns the storage of a location. The functions at the end call StorageOf for one file. In an
// object store a folder is the part of a key up to a slash, and exists while there is an object in
// it.
//
// Errors name the location. UNAVAILABLE means that the storage did not answer after several
// attempts, so it is not known which files it has.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace leeway {

struct StoredEntry {
  std::string name;
  bool is_folder = false;
  // The size in bytes and the ETag of a file. They are set only in an object store. The ETag
  // differs if the content differs.
  uint64_t size = 0;
  std::string version = {};
};

void SortByName(std::vector<StoredEntry>& entries);

// A file that can be read at any position. Thread-safe.
class StoredFile {
 public:
  virtual ~StoredFile() = default;
  virtual const std::string& location() const = 0;
  // Returns the size in bytes at the time when the file was opened.
  virtual uint64_t size() const = 0;
  // Returns the ETag of an object, or an empty string for a file in a folder.
  virtual std::string version() const { return ""; }
  // Returns the MD5 of the content in hexadecimal, or an empty string if the storage does not
  // report it.
  virtual std::string md5() const { return ""; }
  // Fills `target` from byte `position` on. Returns DATA_LOSS if the file ends before that, or was
  // replaced after it was opened.
  virtual absl::Status ReadAt(uint64_t position, std::span<uint8_t> target) const = 0;
};

// Writes a file, which appears whole and durable when Finish succeeds. Without Finish, or if Finish
// fails, the previous content stays. (If Finish returns UNAVAILABLE, the new file may nevertheless
// have appeared, whole.) Not thread-safe. Two writers of one location do not disturb each other.
// The file has the content of the last writer to finish.
class StoredFileWriter {
 public:
  virtual ~StoredFileWriter() = default;
  // After an error all later calls fail, too.
  virtual absl::Status Append(std::span<const uint8_t> bytes) = 0;
  // Makes the file appear. Call this function once.
  virtual absl::Status Finish() = 0;
};

// Thread-safe. Calls may wait for a disk or a network.
class Storage {
 public:
  virtual ~Storage() = default;

  // Opens a file for reading. Returns NOT_FOUND if the file does not exist.
  virtual absl::StatusOr<std::unique_ptr<StoredFile>> Open(const std::string& location) = 0;
  // Begins to write a file, whose folder must have been made by MakeFolder.
  virtual absl::StatusOr<std::unique_ptr<StoredFileWriter>> Create(const std::string& location) = 0;
  // Returns the size in bytes. Returns NOT_FOUND if the file does not exist.
  virtual absl::StatusOr<uint64_t> SizeOf(const std::string& location) = 0;
  // Opens a file with the size and version of `entry`, which comes from a listing, so that the
  // storage need not be asked again. A read returns DATA_LOSS if the file has been replaced since.
  virtual absl::StatusOr<std::unique_ptr<StoredFile>> OpenListed(const std::string& location,
                                                                 const StoredEntry& entry) {
    return Open(location);
  }
  // Lists the files and folders directly in the folder, sorted by name. The list is empty if the
  // folder does not exist.
  virtual absl::StatusOr<std::vector<StoredEntry>> Entries(const std::string& folder) = 0;
  // Returns the names in Entries().
  absl::StatusOr<std::vector<std::string>> List(const std::string& folder);
  // Makes the folder and its parents, durably. Returns OK if the folder exists already.
  virtual absl::Status MakeFolder(const std::string& folder) = 0;
  // Removes a file. Returns OK if the file does not exist.
  virtual absl::Status RemoveFile(const std::string& location) = 0;
  // Removes the folder with all its content, including unfinished files. Returns OK if the folder
  // does not exist.
  virtual absl::Status RemoveFolder(const std::string& folder) = 0;
  // Removes unfinished files below the folder. No process may write there meanwhile.
  virtual absl::Status RemoveUnfinished(const std::string& folder) = 0;
  // Makes the folder, and checks whether files can be written, read, listed and removed there.
  // Returns INVALID_ARGUMENT if a setting is wrong (credentials, bucket, permissions), with a
  // message that says what to do. Other errors may be temporary.
  virtual absl::Status Prepare(const std::string& folder) = 0;
};

// Returns the storage of a location. The storage lives until the process ends. Returns
// INVALID_ARGUMENT if the string is not a location, or if a setting that an object store needs is
// missing.
absl::StatusOr<Storage*> StorageOf(const std::string& location);
// Makes StorageOf return `storage` from now on for all locations that begin with `prefix`, which
// must not be the beginning of a path. For tests.
void MountStorage(const std::string& prefix, std::shared_ptr<Storage> storage);

// Removes slashes at the end of an s3:// location. Returns INVALID_ARGUMENT if the location is not
// valid. Paths stay as they are.
absl::StatusOr<std::string> NormalLocation(const std::string& location);

// Lists what is directly in the folder (Storage::List).
absl::StatusOr<std::vector<std::string>> ListStored(const std::string& folder);
absl::StatusOr<std::unique_ptr<StoredFile>> OpenStored(const std::string& location);
absl::StatusOr<std::unique_ptr<StoredFileWriter>> CreateStored(const std::string& location);
// Reads the whole file. Returns RESOURCE_EXHAUSTED if it has more than `max_bytes`.
absl::StatusOr<std::string> ReadStored(const std::string& location, uint64_t max_bytes);
// Writes the whole file as a StoredFileWriter does.
absl::Status WriteStored(const std::string& location, std::string_view content);
// Copies a file, also from one storage to another.
absl::Status CopyStored(const std::string& from, const std::string& to);

}  // namespace leeway
