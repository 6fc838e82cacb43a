#include "common/storage/folder_storage.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "common/status.h"

namespace leeway {
namespace {

class FolderFileReader final : public StoredFile {
 public:
  explicit FolderFileReader(FileReader file) : file_(std::move(file)) {}
  const std::string& location() const override { return file_.path(); }
  uint64_t size() const override { return file_.size(); }
  absl::Status ReadAt(uint64_t position, std::span<uint8_t> target) const override {
    return file_.ReadAt(position, target);
  }

 private:
  const FileReader file_;
};

class FolderFileWriter final : public StoredFileWriter {
 public:
  explicit FolderFileWriter(FileWriter file) : file_(std::move(file)) {}
  absl::Status Append(std::span<const uint8_t> bytes) override { return file_.Append(bytes); }
  absl::Status Finish() override { return file_.Finish(); }

 private:
  FileWriter file_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<StoredFile>> FolderStorage::Open(const std::string& path) {
  ASSIGN_OR_RETURN(FileReader file, FileReader::Open(path));
  return std::make_unique<FolderFileReader>(std::move(file));
}

absl::StatusOr<std::unique_ptr<StoredFileWriter>> FolderStorage::Create(const std::string& path) {
  ASSIGN_OR_RETURN(FileWriter file, FileWriter::Create(path));
  return std::make_unique<FolderFileWriter>(std::move(file));
}

absl::StatusOr<uint64_t> FolderStorage::SizeOf(const std::string& path) {
  ASSIGN_OR_RETURN(const FileReader file, FileReader::Open(path));
  return file.size();
}

absl::StatusOr<std::vector<StoredEntry>> FolderStorage::Entries(const std::string& folder) {
  std::vector<StoredEntry> entries;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  if (error == std::errc::no_such_file_or_directory) return entries;
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    std::error_code kind;
    entries.push_back({entry->path().filename().string(), entry->is_directory(kind)});
  }
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("listing '", folder, "'"));
  SortByName(entries);
  return entries;
}

absl::Status FolderStorage::MakeFolder(const std::string& folder) { return MakeFolders(folder); }
absl::Status FolderStorage::RemoveFile(const std::string& path) { return RemoveTree(path); }
absl::Status FolderStorage::RemoveFolder(const std::string& folder) { return RemoveTree(folder); }
absl::Status FolderStorage::RemoveUnfinished(const std::string& folder) { return absl::OkStatus(); }
absl::Status FolderStorage::Prepare(const std::string& folder) { return MakeFolders(folder); }

}  // namespace leeway
