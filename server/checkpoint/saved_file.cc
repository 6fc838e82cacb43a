#include "server/checkpoint/saved_file.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace leeway {
namespace {

constexpr size_t kChunkBytes = 1 << 20;

// Converts the error for a file that a manifest names to DATA_LOSS. UNAVAILABLE stays as it is,
// because the file may exist if the storage does not answer.
absl::Status AsLoss(const absl::Status& status) {
  if (status.ok() || absl::IsUnavailable(status)) return status;
  return absl::DataLossError(status.message());
}

absl::Status CheckBytes(const std::string& path, uint64_t bytes, const v1::SavedShard& saved) {
  if (bytes == saved.bytes()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("'", path, "' has ", bytes, " bytes, but its manifest says ", saved.bytes()));
}

}  // namespace

absl::StatusOr<SavedFileWriter> SavedFileWriter::Create(const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<StoredFileWriter> file, CreateStored(path));
  return SavedFileWriter(path.substr(path.rfind('/') + 1), std::move(file));
}

SavedFileWriter::SavedFileWriter(std::string name, std::unique_ptr<StoredFileWriter> file)
    : file_(std::move(file)) {
  saved_.set_file(std::move(name));
}

absl::Status SavedFileWriter::Append(std::span<const uint8_t> bytes) {
  digest_.Update(bytes);
  saved_.set_bytes(saved_.bytes() + bytes.size());
  return file_->Append(bytes);
}

absl::StatusOr<v1::SavedShard> SavedFileWriter::Finish() {
  RETURN_IF_ERROR(file_->Finish());
  saved_.set_sha256(digest_.Hex());
  return saved_;
}

absl::Status CheckSize(const std::string& folder, const v1::SavedShard& saved) {
  const std::string path = absl::StrCat(folder, "/", saved.file());
  ASSIGN_OR_RETURN(Storage* const storage, StorageOf(path));
  const absl::StatusOr<uint64_t> bytes = storage->SizeOf(path);
  RETURN_IF_ERROR(AsLoss(bytes.status()));
  return CheckBytes(path, *bytes, saved);
}

absl::Status CheckDigest(const std::string& folder, const v1::SavedShard& saved) {
  const std::string path = absl::StrCat(folder, "/", saved.file());
  auto opened = OpenStored(path);
  RETURN_IF_ERROR(AsLoss(opened.status()));
  const StoredFile& reader = **opened;
  RETURN_IF_ERROR(CheckBytes(path, reader.size(), saved));
  Digest digest = Digest::Sha256();
  std::vector<uint8_t> chunk(std::min<uint64_t>(kChunkBytes, reader.size()));
  for (uint64_t position = 0; position < reader.size(); position += chunk.size()) {
    chunk.resize(std::min<uint64_t>(chunk.size(), reader.size() - position));
    RETURN_IF_ERROR(reader.ReadAt(position, chunk));
    digest.Update(chunk);
  }
  const std::string hex = digest.Hex();
  if (hex == saved.sha256()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("'", path, "' has SHA-256 ", hex, ", but its manifest says ", saved.sha256()));
}

}  // namespace leeway
