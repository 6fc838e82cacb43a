// Where checkpoints and the files of a run lie: in folders, or in an object store.
//
// A file is named by its location: a path, or s3://BUCKET/KEY (docs/storage.md). Whoever has a
// location asks StorageOf for the storage behind it; the functions below do that for one file. In
// an object store a folder is the part of a key up to a slash: it is there while something is in
// it.
//
// Errors name the location. UNAVAILABLE: the storage does not answer now, and was asked repeatedly;
// nothing can be said about what is there.
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

// What a folder has in it.
struct StoredEntry {
  std::string name;
  bool is_folder = false;
  // Of a file in an object store: bytes, and its ETag, which another content does not have.
  uint64_t size = 0;
  std::string version = {};
};

void SortByName(std::vector<StoredEntry>& entries);

// A file that is read at any place. Thread-safe.
class StoredFile {
 public:
  virtual ~StoredFile() = default;
  virtual const std::string& location() const = 0;
  // When it was opened.
  virtual uint64_t size() const = 0;
  // The ETag of an object; empty for a file of a folder.
  virtual std::string version() const { return ""; }
  // Of the content, in hexadecimal, where the storage says it; else empty.
  virtual std::string md5() const { return ""; }
  // Fills `target` from byte `position` on. DATA_LOSS if the file ends before, or is another one by
  // now.
  virtual absl::Status ReadAt(uint64_t position, std::span<uint8_t> target) const = 0;
};

// A file that appears whole and durable with Finish, or not at all: without Finish, or after its
// failure, what was there before stays. (After an error that is UNAVAILABLE the new file may be
// there all the same, whole.) Not thread-safe. Two writers of one location do not disturb each
// other: the last to finish wins.
class StoredFileWriter {
 public:
  virtual ~StoredFileWriter() = default;
  // After an error every later call fails too.
  virtual absl::Status Append(std::span<const uint8_t> bytes) = 0;
  // Once.
  virtual absl::Status Finish() = 0;
};

// Thread-safe; calls may block on a disk or a network.
class Storage {
 public:
  virtual ~Storage() = default;

  // NOT_FOUND if there is no such file.
  virtual absl::StatusOr<std::unique_ptr<StoredFile>> Open(const std::string& location) = 0;
  // Into a folder that was made by MakeFolder.
  virtual absl::StatusOr<std::unique_ptr<StoredFileWriter>> Create(const std::string& location) = 0;
  // Bytes. NOT_FOUND if there is no such file.
  virtual absl::StatusOr<uint64_t> SizeOf(const std::string& location) = 0;
  // The file that `entry` is of a listing: as it was then, without asking for it once more. Reading
  // it says DATA_LOSS if it is another one by now.
  virtual absl::StatusOr<std::unique_ptr<StoredFile>> OpenListed(const std::string& location,
                                                                 const StoredEntry& entry) {
    return Open(location);
  }
  // The files and folders directly in the folder, sorted by their names; none if it is not there.
  virtual absl::StatusOr<std::vector<StoredEntry>> Entries(const std::string& folder) = 0;
  // Their names.
  absl::StatusOr<std::vector<std::string>> List(const std::string& folder);
  // Makes the folder and those above it, durably. OK if it is there.
  virtual absl::Status MakeFolder(const std::string& folder) = 0;
  // OK if there is no such file.
  virtual absl::Status RemoveFile(const std::string& location) = 0;
  // With all that is in it, also what was begun there and never finished. OK if there is none.
  virtual absl::Status RemoveFolder(const std::string& folder) = 0;
  // Removes what was begun below the folder and never finished. Nobody may be writing there.
  virtual absl::Status RemoveUnfinished(const std::string& folder) = 0;
  // Makes the folder, and finds out now whether files can be written, read, listed and removed
  // there. INVALID_ARGUMENT, saying what to do, where a setting is wrong: credentials, bucket,
  // permissions; other errors may pass.
  virtual absl::Status Prepare(const std::string& folder) = 0;
};

// The storage of a location; stays until the process ends. INVALID_ARGUMENT: it is no location, or
// what an object store needs is not set.
absl::StatusOr<Storage*> StorageOf(const std::string& location);
// From now on `storage` has all locations that begin with `prefix`, which is no path's: for tests.
void MountStorage(const std::string& prefix, std::shared_ptr<Storage> storage);

// Without slashes at its end; INVALID_ARGUMENT if it is an s3:// location that none can be. Paths
// stay as they are.
absl::StatusOr<std::string> NormalLocation(const std::string& location);

// What is directly in the folder (Storage::List).
absl::StatusOr<std::vector<std::string>> ListStored(const std::string& folder);
absl::StatusOr<std::unique_ptr<StoredFile>> OpenStored(const std::string& location);
absl::StatusOr<std::unique_ptr<StoredFileWriter>> CreateStored(const std::string& location);
// The whole file. RESOURCE_EXHAUSTED if it has more than `max_bytes`.
absl::StatusOr<std::string> ReadStored(const std::string& location, uint64_t max_bytes);
// As a StoredFileWriter does.
absl::Status WriteStored(const std::string& location, std::string_view content);
// Copies a file, from any storage to any other.
absl::Status CopyStored(const std::string& from, const std::string& to);

}  // namespace leeway
