// Where the files of a job are: in the data folder, or by absolute names; on this machine, or in an
// object store (docs/data.md).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/storage/read_ahead.h"

namespace leeway {

// Not relative to the data folder: an absolute path, or s3://BUCKET/KEY.
bool IsAbsoluteData(const std::string& name);

// The path or location of `name`, which is absolute or in the data folder. INVALID_ARGUMENT for a
// relative name that has "..".
absl::StatusOr<std::string> PathOfData(const std::string& data_dir, const std::string& name);

// Where that can be opened: the path itself, or a copy of what is in an object store, which is
// fetched. Errors as of LocalCopies::Get.
absl::StatusOr<std::string> PathHere(const std::string& path);

enum class DataKind { kNothing, kFile, kFolder };
// What there is of this name.
absl::StatusOr<DataKind> KindOfData(const std::string& data_dir, const std::string& name);

// The names in a folder, sorted, without those that begin with a dot.
struct DataEntries {
  std::vector<std::string> folders;
  std::vector<std::string> files;
};
// NOT_FOUND if there is no such folder.
absl::StatusOr<DataEntries> ListDataFolder(const std::string& data_dir, const std::string& folder);

// RESOURCE_EXHAUSTED unless this machine has room for copies of those of the files that are in an
// object store, and have none here.
absl::Status CheckRoomForData(const std::string& data_dir, const std::vector<std::string>& names);

// Fetches copies ahead, of files in an object store; others are left alone. Thread-safe.
class DataAhead {
 public:
  explicit DataAhead(std::string data_dir) : data_dir_(std::move(data_dir)) {}
  // In the order in which they will be read.
  void WillNeed(const std::string& name) EXCLUDES(mutex_);

 private:
  const std::string data_dir_;
  Mutex mutex_;
  // Made with the first file that is in a store.
  std::unique_ptr<ReadAhead> ahead_ GUARDED_BY(mutex_);
};

}  // namespace leeway
