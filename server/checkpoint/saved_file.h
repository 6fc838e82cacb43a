// Writes and checks the files of a checkpoint. The manifest lists each file with its name, size and
// SHA-256.
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

// Writes a file atomically and computes its digest. Not thread-safe.
class SavedFileWriter {
 public:
  static absl::StatusOr<SavedFileWriter> Create(const std::string& path);

  absl::Status Append(std::span<const uint8_t> bytes);
  // Makes the file durable. Returns its entry for the manifest.
  absl::StatusOr<v1::SavedShard> Finish();

 private:
  SavedFileWriter(std::string name, std::unique_ptr<StoredFileWriter> file);

  v1::SavedShard saved_;
  std::unique_ptr<StoredFileWriter> file_;
  Digest digest_ = Digest::Sha256();
};

// Returns DATA_LOSS unless the file is in `folder` and has the listed size.
absl::Status CheckSize(const std::string& folder, const v1::SavedShard& saved);
// Returns DATA_LOSS unless the file also has the listed digest. Reads the whole file.
absl::Status CheckDigest(const std::string& folder, const v1::SavedShard& saved);

}  // namespace leeway
