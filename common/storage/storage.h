// Stores checkpoints and the files of a run, in folders or in an object store.
//
// A file is named by its location: a path, or s3://BUCKET/KEY (docs/storage.md). StorageOf returns
// the storage behind a location; the functions at the end do that for one file. In an object store
// a folder is the part of a key up to a slash, and exists while it has something in it.
//
// Errors name the location. UNAVAILABLE: the storage does not answer after several attempts, so
// nothing is known about what it holds.
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

// An entry of a folder.
struct StoredEntry {
  std::string name;
  bool is_folder = false;
  // For a file in an object store: its size in bytes, and its ETag, which differs for other
  // content.
  uint64_t size = 0;
  std::string version = {};
};

void SortByName(std::vector<StoredEntry>& entries);

// A file that can be read at any position. Thread-safe.
class StoredFile {
 public:
  virtual ~StoredFile() = default;
  virtual const std::string& location() const = 0;
  // The size at the time of opening, in bytes.
  virtual uint64_t size() const = 0;
  // The ETag of an object; empty for a file of a folder.
  virtual std::string version() const { return ""; }
  // The MD5 of the content in hexadecimal if the storage reports one; otherwise empty.
  virtual std::string md5() const { return ""; }
  // Fills `target` from byte `position` on. DATA_LOSS if the file ends before that, or was replaced
  // after it was opened.
  virtual absl::Status ReadAt(uint64_t position, std::span<uint8_t> target) const = 0;
};

// A file that Finish makes appear whole and durable. Without Finish, or if Finish fails, the
// previous content stays. (After UNAVAILABLE the new file may still have appeared, whole.) Not
// thread-safe. Two writers of one location do not disturb each other: the last one to finish wins.
class StoredFileWriter {
 public:
  virtual ~StoredFileWriter() = default;
  // After an error all later calls fail, too.
  virtual absl::Status Append(std::span<const uint8_t> bytes) = 0;
  // Call it once.
  virtual absl::Status Finish() = 0;
};

// Thread-safe; calls may block on a disk or a network.
class Storage {
 public:
  virtual ~Storage() = default;

  // NOT_FOUND if the file does not exist.
  virtual absl::StatusOr<std::unique_ptr<StoredFile>> Open(const std::string& location) = 0;
  // The folder must have been made by MakeFolder.
  virtual absl::StatusOr<std::unique_ptr<StoredFileWriter>> Create(const std::string& location) = 0;
  // Returns the size in bytes. NOT_FOUND if the file does not exist.
  virtual absl::StatusOr<uint64_t> SizeOf(const std::string& location) = 0;
  // Opens the file of a listing's `entry` in its listed state, without asking the storage for it
  // again. A read returns DATA_LOSS if the file has been replaced.
  virtual absl::StatusOr<std::unique_ptr<StoredFile>> OpenListed(const std::string& location,
                                                                 const StoredEntry& entry) {
    return Open(location);
  }
  // Lists the files and folders directly in the folder, sorted by name; nothing if the folder does
  // not exist.
  virtual absl::StatusOr<std::vector<StoredEntry>> Entries(const std::string& folder) = 0;
  // Returns the names of Entries.
  absl::StatusOr<std::vector<std::string>> List(const std::string& folder);
  // Makes the folder and its parents, durably. OK if the folder exists.
  virtual absl::Status MakeFolder(const std::string& folder) = 0;
  // OK if the file does not exist.
  virtual absl::Status RemoveFile(const std::string& location) = 0;
  // Removes the folder with all its content, including unfinished files. OK if the folder does not
  // exist.
  virtual absl::Status RemoveFolder(const std::string& folder) = 0;
  // Removes unfinished files below the folder. No process may write there meanwhile.
  virtual absl::Status RemoveUnfinished(const std::string& folder) = 0;
  // Makes the folder, and checks now whether files can be written, read, listed and removed there.
  // INVALID_ARGUMENT: a setting is wrong (credentials, bucket, permissions), and the text says what
  // to do. Other errors may pass.
  virtual absl::Status Prepare(const std::string& folder) = 0;
};

// Returns the storage of a location. It lives until the process ends. INVALID_ARGUMENT: the text is
// not a location, or a setting that an object store needs is missing.
absl::StatusOr<Storage*> StorageOf(const std::string& location);
// From now on `storage` serves all locations that begin with `prefix`, which must not be a path's.
// For tests.
void MountStorage(const std::string& prefix, std::shared_ptr<Storage> storage);

// Removes slashes at the end of an s3:// location; INVALID_ARGUMENT if the location is not valid.
// Paths stay as they are.
absl::StatusOr<std::string> NormalLocation(const std::string& location);

// Lists what is directly in the folder (Storage::List).
absl::StatusOr<std::vector<std::string>> ListStored(const std::string& folder);
absl::StatusOr<std::unique_ptr<StoredFile>> OpenStored(const std::string& location);
absl::StatusOr<std::unique_ptr<StoredFileWriter>> CreateStored(const std::string& location);
// Reads the whole file. RESOURCE_EXHAUSTED if it has more than `max_bytes`.
absl::StatusOr<std::string> ReadStored(const std::string& location, uint64_t max_bytes);
// Writes the whole file as a StoredFileWriter does.
absl::Status WriteStored(const std::string& location, std::string_view content);
// Copies a file from any storage to any other.
absl::Status CopyStored(const std::string& from, const std::string& to);

}  // namespace leeway
