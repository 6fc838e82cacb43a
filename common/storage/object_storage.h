// A storage for files as objects of one bucket. A small file is put in one request, and a large
// file in parts. In both cases the object appears with the last request, and only as a whole.
#pragma once

#include <memory>
#include <string>

#include "common/object_store/s3_client.h"
#include "common/storage/storage.h"

namespace leeway {

class ObjectStorage final : public Storage {
 public:
  explicit ObjectStorage(std::unique_ptr<S3Client> client) : client_(std::move(client)) {}

  absl::StatusOr<std::unique_ptr<StoredFile>> Open(const std::string& location) override;
  absl::StatusOr<std::unique_ptr<StoredFile>> OpenListed(const std::string& location,
                                                         const StoredEntry& entry) override;
  absl::StatusOr<std::unique_ptr<StoredFileWriter>> Create(const std::string& location) override;
  absl::StatusOr<uint64_t> SizeOf(const std::string& location) override;
  absl::StatusOr<std::vector<StoredEntry>> Entries(const std::string& folder) override;
  // Does nothing, because an object store has no folders.
  absl::Status MakeFolder(const std::string& folder) override;
  absl::Status RemoveFile(const std::string& location) override;
  absl::Status RemoveFolder(const std::string& folder) override;
  absl::Status RemoveUnfinished(const std::string& folder) override;
  absl::Status Prepare(const std::string& folder) override;

 private:
  // Returns the key within the bucket.
  absl::StatusOr<std::string> KeyOf(const std::string& location) const;
  // Returns the prefix of keys in a folder: "FOLDER/", or "" for the bucket itself.
  absl::StatusOr<std::string> PrefixOf(const std::string& folder) const;
  absl::Status AbortBelow(const std::string& prefix);
  absl::Status TryOut(const std::string& folder);

  const std::unique_ptr<S3Client> client_;
};

// Makes a storage from the environment of the process (FindStoreSettings). Sends no request yet.
absl::StatusOr<std::shared_ptr<Storage>> MakeObjectStorage(const std::string& bucket);

}  // namespace leeway
