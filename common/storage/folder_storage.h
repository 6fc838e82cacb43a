// Files in folders of this machine, or of one that it mounts (common/files/files.h): written under
// a temporary name, then fsync, rename, fsync of the folder.
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
  // What was never finished goes with its folder.
  absl::Status RemoveUnfinished(const std::string& folder) override;
  // Only makes it: the first file that is written tells the rest.
  absl::Status Prepare(const std::string& folder) override;
};

}  // namespace leeway
