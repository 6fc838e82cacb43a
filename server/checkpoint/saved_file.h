// A file of a checkpoint as its manifest lists it: name, size, SHA-256.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files/digest.h"
#include "common/storage/storage.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// Writes a file atomically and digests it on the way. Not thread-safe.
class SavedFileWriter {
 public:
  static absl::StatusOr<SavedFileWriter> Create(const std::string& path);

  absl::Status Append(std::span<const uint8_t> bytes);
  // The file is durable; what the manifest says of it.
  absl::StatusOr<v1::SavedShard> Finish();

 private:
  SavedFileWriter(std::string name, std::unique_ptr<StoredFileWriter> file);

  v1::SavedShard saved_;
  std::unique_ptr<StoredFileWriter> file_;
  Digest digest_ = Digest::Sha256();
};

// DATA_LOSS unless the file is in `folder` with the size that is written down.
absl::Status CheckSize(const std::string& folder, const v1::SavedShard& saved);
// ... and with the digest: reads it all.
absl::Status CheckDigest(const std::string& folder, const v1::SavedShard& saved);

}  // namespace leeway
