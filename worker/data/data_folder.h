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

// Whether `name` is an absolute path or s3://BUCKET/KEY, and not relative to the data folder.
bool IsAbsoluteData(const std::string& name);

// The path or location of `name`: `name` itself if it is absolute, otherwise a path in the data
// folder. INVALID_ARGUMENT for a relative name that has "..".
absl::StatusOr<std::string> PathOfData(const std::string& data_dir, const std::string& name);

// A path on this machine at which `path` can be opened: `path` itself, or a copy of what is in an
// object store. The copy is fetched. Errors are those of LocalCopies::Get.
absl::StatusOr<std::string> PathHere(const std::string& path);

enum class DataKind { kNothing, kFile, kFolder };
// Whether `name` is a file, a folder, or does not exist.
absl::StatusOr<DataKind> KindOfData(const std::string& data_dir, const std::string& name);

// The names in a folder, sorted, without those that begin with a dot.
struct DataEntries {
  std::vector<std::string> folders;
  std::vector<std::string> files;
};
// Lists the entries of `folder`. NOT_FOUND if it does not exist.
absl::StatusOr<DataEntries> ListDataFolder(const std::string& data_dir, const std::string& folder);

// RESOURCE_EXHAUSTED unless this machine has room for copies of all `names` that are in an object
// store and have no copy here yet.
absl::Status CheckRoomForData(const std::string& data_dir, const std::vector<std::string>& names);

// Fetches copies of files in an object store before they are read. Other files are left alone.
// Thread-safe.
class DataAhead {
 public:
  explicit DataAhead(std::string data_dir) : data_dir_(std::move(data_dir)) {}
  // Callers name the files in the order in which they will be read.
  void WillNeed(const std::string& name) EXCLUDES(mutex_);

 private:
  const std::string data_dir_;
  Mutex mutex_;
  // Created for the first file that is in an object store.
  std::unique_ptr<ReadAhead> ahead_ GUARDED_BY(mutex_);
};

}  // namespace leeway
