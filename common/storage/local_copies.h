// Keeps copies of an object store's files in a folder of this machine, for callers that map a file
// or read it repeatedly.
//
// The name of a copy is a digest of the file's location, version (ETag) and size. So new content
// gets a new copy, and an existing copy never changes. A copy appears whole, by renaming, after a
// check of its size, and of its MD5 if the store reports one. So all processes of a user can share
// the folder. A user may remove the folder when no process reads a copy.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/environment.h"
#include "common/mutex.h"
#include "common/storage/storage.h"

namespace leeway {

// Thread-safe. Calls may wait for the store. The store is asked for the version of a location only
// once, so the content of a file does not change for this process. Errors name the location:
//
//   INVALID_ARGUMENT    a setting of the store is wrong, such as its permissions
//   NOT_FOUND           the store does not have the file
//   DATA_LOSS           the file was replaced, or arrives damaged
//   RESOURCE_EXHAUSTED  the disk is full
//   UNAVAILABLE         the store did not answer at the last retry
class LocalCopies {
 public:
  // Keeps copies in `folder`, which the first copy creates.
  explicit LocalCopies(std::string folder) : folder_(std::move(folder)) {}
  LocalCopies(const LocalCopies&) = delete;

  const std::string& folder() const { return folder_; }
  // Returns the path of the copy. Fetches the copy if it does not exist, or waits while another
  // process fetches it.
  absl::StatusOr<std::string> Get(const std::string& location) EXCLUDES(mutex_);
  // Returns the size and version that the store has at the location. The result's name is empty.
  absl::StatusOr<StoredEntry> Find(const std::string& location) EXCLUDES(mutex_);
  // Returns whether the copy exists, as far as that is known without asking the store.
  bool Has(const std::string& location) const EXCLUDES(mutex_);
  // Lists what is directly in a folder of the store.
  absl::StatusOr<std::vector<StoredEntry>> List(const std::string& folder) EXCLUDES(mutex_);
  // Checks whether the disk has space for the files that have no copy yet. If not, returns
  // RESOURCE_EXHAUSTED, with the figures. A file that the store does not have counts as empty.
  absl::Status CheckRoom(std::span<const std::string> locations) EXCLUDES(mutex_);

 private:
  // Returns the entry of a location that was found or listed before.
  std::optional<StoredEntry> Known(const std::string& location) const EXCLUDES(mutex_);
  std::string PathOf(const std::string& location, const StoredEntry& entry) const;
  absl::Status Fetch(const std::string& location, const StoredEntry& entry,
                     const std::string& path) const;
  absl::Status MakeFolderOf(const std::string& path) const;

  const std::string folder_;
  mutable Mutex mutex_;
  // Entries by location.
  std::map<std::string, StoredEntry> entries_ GUARDED_BY(mutex_);
};

// Returns the folder for copies, which is LEEWAY_DATA_CACHE if that is set, otherwise leeway/data
// in XDG_CACHE_HOME or in ~/.cache. Returns INVALID_ARGUMENT if none of these variables is set.
absl::StatusOr<std::string> CopiesFolder(const EnvironmentLookup& look_up);
// Returns the copies of this process, which are in its CopiesFolder. The object lives until the
// process ends.
absl::StatusOr<LocalCopies*> ProcessCopies();

}  // namespace leeway
