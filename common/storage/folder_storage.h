// A storage for files in folders of this machine, or in folders that this machine mounts
// (common/files/files.h). A file is written under a temporary name, synced and renamed, and then
// its folder is synced.
#pragma once

#include "common/storage/storage.h"

namespace leeway {

class FolderStorage final : public Storage {
 public:
  absl::StatusOr<std::unique_ptr<StoredFile>> Open(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<StoredFileWriter>> Create(const std::string& path) override;
  absl::StatusOr<uint64_t> SizeOf(const std::string& path) override;
  absl::StatusOr<std::vector<StoredEntry>> Entries(const std::string& folder) override;
  absl::Status MakeFolder(const std::string& folder) override;
  absl::Status RemoveFile(const std::string& path) override;
  absl::Status RemoveFolder(const std::string& folder) override;
  // Does nothing, because unfinished files are removed with their folder.
  absl::Status RemoveUnfinished(const std::string& folder) override;
  // Makes the folder but writes nothing there. The first real write will show whether files can be
  // written.
  absl::Status Prepare(const std::string& folder) override;
};

}  // namespace leeway
