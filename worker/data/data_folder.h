// Finds the files of a job. They are in the data folder or have absolute names, on this machine or
// in an object store (docs/data.md).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/storage/read_ahead.h"

namespace leeway {

// Returns true if `name` is an absolute path or s3://BUCKET/KEY, rather than relative to the data
// folder.
bool IsAbsoluteData(const std::string& name);

// Returns the path or location of `name`: `name` itself if it is absolute, otherwise a path in the
// data folder. Returns INVALID_ARGUMENT for a relative name that has "..".
absl::StatusOr<std::string> PathOfData(const std::string& data_dir, const std::string& name);

// Returns a path on this machine at which the file can be opened. This is `path` itself, unless
// `path` is in an object store: then the function fetches a copy, and returns the path of the copy.
// Returns the errors of LocalCopies::Get.
absl::StatusOr<std::string> PathHere(const std::string& path);

enum class DataKind { kNothing, kFile, kFolder };
// Returns whether `name` is a file, is a folder, or does not exist.
absl::StatusOr<DataKind> KindOfData(const std::string& data_dir, const std::string& name);

// The names of the entries of a folder, sorted, without names that begin with a dot.
struct DataEntries {
  std::vector<std::string> folders;
  std::vector<std::string> files;
};
// Lists the entries of `folder`. Returns NOT_FOUND if the folder does not exist.
absl::StatusOr<DataEntries> ListDataFolder(const std::string& data_dir, const std::string& folder);

// Returns RESOURCE_EXHAUSTED unless this machine has room for copies of all `names` that are in an
// object store and have no copy on this machine yet.
absl::Status CheckRoomForData(const std::string& data_dir, const std::vector<std::string>& names);

// Fetches copies of files in an object store before they are read. Does nothing for other files.
// Thread-safe.
class DataAhead {
 public:
  explicit DataAhead(std::string data_dir) : data_dir_(std::move(data_dir)) {}
  // Announces that a file will be read. Callers name the files in the order in which they will read
  // them.
  void WillNeed(const std::string& name) EXCLUDES(mutex_);

 private:
  const std::string data_dir_;
  Mutex mutex_;
  // Fetches the files. Created for the first file that is in an object store.
  std::unique_ptr<ReadAhead> ahead_ GUARDED_BY(mutex_);
};

}  // namespace leeway
