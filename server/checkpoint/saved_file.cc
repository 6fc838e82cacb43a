#include "server/checkpoint/saved_file.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace leeway {
namespace {

constexpr size_t kChunkBytes = 1 << 20;

absl::StatusOr<FileReader> OpenChecked(const std::string& folder, const v1::SavedShard& saved) {
  const std::string path = absl::StrCat(folder, "/", saved.file());
  absl::StatusOr<FileReader> reader = FileReader::Open(path);
  if (!reader.ok()) return absl::DataLossError(reader.status().message());
  if (reader->size() != saved.bytes()) {
    return absl::DataLossError(absl::StrCat("'", path, "' has ", reader->size(),
                                            " bytes, its manifest says ", saved.bytes()));
  }
  return reader;
}

}  // namespace

absl::StatusOr<SavedFileWriter> SavedFileWriter::Create(const std::string& path) {
  ASSIGN_OR_RETURN(FileWriter file, FileWriter::Create(path));
  return SavedFileWriter(path.substr(path.rfind('/') + 1), std::move(file));
}

SavedFileWriter::SavedFileWriter(std::string name, FileWriter file) : file_(std::move(file)) {
  saved_.set_file(std::move(name));
}

absl::Status SavedFileWriter::Append(std::span<const uint8_t> bytes) {
  digest_.Update(bytes);
  saved_.set_bytes(saved_.bytes() + bytes.size());
  return file_.Append(bytes);
}

absl::StatusOr<v1::SavedShard> SavedFileWriter::Finish() {
  RETURN_IF_ERROR(file_.Finish());
  saved_.set_sha256(digest_.Hex());
  return saved_;
}

absl::Status CheckSize(const std::string& folder, const v1::SavedShard& saved) {
  return OpenChecked(folder, saved).status();
}

absl::Status CheckDigest(const std::string& folder, const v1::SavedShard& saved) {
  ASSIGN_OR_RETURN(const FileReader reader, OpenChecked(folder, saved));
  Sha256 digest;
  std::vector<uint8_t> chunk(std::min<uint64_t>(kChunkBytes, reader.size()));
  for (uint64_t position = 0; position < reader.size(); position += chunk.size()) {
    chunk.resize(std::min<uint64_t>(chunk.size(), reader.size() - position));
    RETURN_IF_ERROR(reader.ReadAt(position, chunk));
    digest.Update(chunk);
  }
  const std::string hex = digest.Hex();
  if (hex == saved.sha256()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("'", reader.path(), "' has SHA-256 ", hex,
                                          ", its manifest says ", saved.sha256()));
}

}  // namespace leeway
