// Copies of an object store's files in a folder of this machine, for whoever maps a file or reads
// it again and again.
//
// A copy is named by a digest of its location, its version (ETag) and its size: another content is
// another copy, and what is there is never changed. It appears whole, by renaming, after its size
// and, where the store says it, its MD5 were checked. So all processes of a user share the folder,
// and it may be removed at any time but while somebody reads.
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

// Thread-safe; calls may block on the store. Which version a location has is asked once: for this
// process a file stays what it was. Errors name the location: INVALID_ARGUMENT for what stays wrong
// with the settings of the store, its permissions among them; NOT_FOUND; DATA_LOSS if a file was
// replaced or arrives damaged; RESOURCE_EXHAUSTED if the disk is full; UNAVAILABLE once the store's
// retries are used up.
class LocalCopies {
 public:
  // In `folder`, which is made when the first copy is.
  explicit LocalCopies(std::string folder) : folder_(std::move(folder)) {}
  LocalCopies(const LocalCopies&) = delete;

  const std::string& folder() const { return folder_; }
  // The path of the copy, which is fetched unless it is there. Another process that fetches it is
  // waited for.
  absl::StatusOr<std::string> Get(const std::string& location) EXCLUDES(mutex_);
  // What the store has at the location; the name is empty.
  absl::StatusOr<StoredEntry> Find(const std::string& location) EXCLUDES(mutex_);
  // Whether the copy is there, as far as is known without asking the store.
  bool Has(const std::string& location) const EXCLUDES(mutex_);
  // What is directly in a folder of the store.
  absl::StatusOr<std::vector<StoredEntry>> List(const std::string& folder) EXCLUDES(mutex_);
  // RESOURCE_EXHAUSTED, with the figures, unless the disk has room for those of the files that are
  // not here. A file that is not in the store counts as empty.
  absl::Status CheckRoom(std::span<const std::string> locations) EXCLUDES(mutex_);

 private:
  // What was found or listed before.
  std::optional<StoredEntry> Known(const std::string& location) const EXCLUDES(mutex_);
  std::string PathOf(const std::string& location, const StoredEntry& entry) const;
  absl::Status Fetch(const std::string& location, const StoredEntry& entry,
                     const std::string& path) const;
  absl::Status MakeFolderOf(const std::string& path) const;

  const std::string folder_;
  mutable Mutex mutex_;
  // By location.
  std::map<std::string, StoredEntry> entries_ GUARDED_BY(mutex_);
};

// Where copies are kept: LEEWAY_DATA_CACHE, else leeway/data in XDG_CACHE_HOME or ~/.cache.
// INVALID_ARGUMENT if none of these is set.
absl::StatusOr<std::string> CopiesFolder(const EnvironmentLookup& look_up);
// Of this process, in its CopiesFolder. Stays until the process ends.
absl::StatusOr<LocalCopies*> ProcessCopies();

}  // namespace leeway
