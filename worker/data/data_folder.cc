#include "worker/data/data_folder.h"

#include <filesystem>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "common/object_store/address.h"
#include "common/status.h"

namespace leeway {
namespace {

// The number of files that are fetched at the same time. An object store answers a single request
// slowly, but answers many requests in the same time.
constexpr uint32_t kFetchedAtOnce = 8;

absl::Status CheckName(const std::string& name) {
  const auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("data file '", absl::CEscape(name), "': ", why,
                     "; name it relative to the data folder, by an absolute path, or as "
                     "s3://BUCKET/KEY"));
  };
  if (name.empty()) return refuse("the name is empty");
  if (name.find('\0') != std::string::npos) return refuse("the name has a zero byte");
  if (IsAbsoluteData(name)) return absl::OkStatus();
  for (absl::string_view part : absl::StrSplit(name, '/')) {
    if (part == "..") return refuse("the path leaves the data folder by '..'");
  }
  return absl::OkStatus();
}

absl::Status NoFolder(const std::string& path, const std::string& data_dir) {
  return absl::NotFoundError(absl::StrCat(path, ": no such folder; the data folder is '", data_dir,
                                          "', set by --data DIR or LEEWAY_DATA"));
}

// Returns the entries of a folder. If the folder does not exist, returns an empty list (for some
// storages) or NOT_FOUND.
absl::StatusOr<std::vector<StoredEntry>> EntriesOf(const std::string& path) {
  if (IsObjectLocation(path)) {
    ASSIGN_OR_RETURN(LocalCopies* const copies, ProcessCopies());
    return copies->List(path);
  }
  ASSIGN_OR_RETURN(Storage* const storage, StorageOf(path));
  return storage->Entries(path);
}

absl::StatusOr<DataKind> KindInStore(const std::string& location) {
  ASSIGN_OR_RETURN(LocalCopies* const copies, ProcessCopies());
  const auto file = copies->Find(location);
  if (file.ok()) return DataKind::kFile;
  if (!absl::IsNotFound(file.status())) return file.status();
  ASSIGN_OR_RETURN(const std::vector<StoredEntry> entries, copies->List(location));
  return entries.empty() ? DataKind::kNothing : DataKind::kFolder;
}

}  // namespace

bool IsAbsoluteData(const std::string& name) {
  return absl::StartsWith(name, "/") || IsObjectLocation(name);
}

absl::StatusOr<std::string> PathOfData(const std::string& data_dir, const std::string& name) {
  RETURN_IF_ERROR(CheckName(name));
  if (data_dir.empty() || IsAbsoluteData(name)) return name;
  return absl::StrCat(data_dir, absl::EndsWith(data_dir, "/") ? "" : "/", name);
}

absl::StatusOr<std::string> PathHere(const std::string& path) {
  if (!IsObjectLocation(path)) return path;
  ASSIGN_OR_RETURN(LocalCopies* const copies, ProcessCopies());
  return copies->Get(path);
}

absl::StatusOr<DataKind> KindOfData(const std::string& data_dir, const std::string& name) {
  ASSIGN_OR_RETURN(const std::string path, PathOfData(data_dir, name));
  if (IsObjectLocation(path)) return KindInStore(path);
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return DataKind::kFolder;
  return std::filesystem::exists(path, error) ? DataKind::kFile : DataKind::kNothing;
}

absl::StatusOr<DataEntries> ListDataFolder(const std::string& data_dir, const std::string& folder) {
  ASSIGN_OR_RETURN(const std::string path, PathOfData(data_dir, folder));
  auto listed = EntriesOf(path);
  if (absl::IsNotFound(listed.status())) return NoFolder(path, data_dir);
  RETURN_IF_ERROR(listed.status());
  if (listed->empty()) {
    ASSIGN_OR_RETURN(const DataKind kind, KindOfData(data_dir, folder));
    if (kind != DataKind::kFolder) return NoFolder(path, data_dir);
  }
  DataEntries entries;
  for (StoredEntry& entry : *listed) {
    if (entry.name[0] == '.') continue;
    (entry.is_folder ? entries.folders : entries.files).push_back(std::move(entry.name));
  }
  return entries;
}

absl::Status CheckRoomForData(const std::string& data_dir, const std::vector<std::string>& names) {
  std::vector<std::string> locations;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(std::string path, PathOfData(data_dir, name));
    if (IsObjectLocation(path)) locations.push_back(std::move(path));
  }
  if (locations.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(LocalCopies* const copies, ProcessCopies());
  return copies->CheckRoom(locations);
}

void DataAhead::WillNeed(const std::string& name) {
  const absl::StatusOr<std::string> path = PathOfData(data_dir_, name);
  // If there is an error, a later read of the file reports it.
  if (!path.ok() || !IsObjectLocation(*path)) return;
  const absl::StatusOr<LocalCopies*> copies = ProcessCopies();
  if (!copies.ok() || (*copies)->Has(*path)) return;
  MutexLock lock(mutex_);
  if (ahead_ == nullptr) ahead_ = std::make_unique<ReadAhead>(*copies, kFetchedAtOnce);
  ahead_->WillNeed(*path);
}

}  // namespace leeway
