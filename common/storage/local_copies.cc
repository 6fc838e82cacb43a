#include "common/storage/local_copies.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "absl/strings/str_cat.h"
#include "common/files/digest.h"
#include "common/files/files.h"
#include "common/files/sha256.h"
#include "common/object_store/s3_client.h"
#include "common/status.h"
#include "common/storage/copy_lock.h"

namespace leeway {
namespace {

namespace fs = std::filesystem;

constexpr char kFolderVariable[] = "LEEWAY_DATA_CACHE";
// The number of attempts to fetch a file that arrives damaged.
constexpr int kAttempts = 3;
constexpr uint64_t kPieceBytes = 4 << 20;
// The time for which this process waits for another process that fetches a file, in addition to the
// deadline of a request.
constexpr std::chrono::seconds kRetriesAtMost(90);

// Converts errors that the user has to correct to INVALID_ARGUMENT. Temporary errors and NOT_FOUND
// stay as they are.
absl::Status AsReading(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return absl::InvalidArgumentError(status.message());
    default:
      return status;
  }
}

bool IsThere(const std::string& path, uint64_t size) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         static_cast<uint64_t>(info.st_size) == size;
}

// Returns the number of free bytes on the disk of `folder`. If the folder does not exist yet,
// returns the free bytes of the disk on which it would be made.
absl::StatusOr<uint64_t> FreeBytes(const std::string& folder) {
  struct statvfs disk;
  fs::path place = folder;
  while (statvfs(place.c_str(), &disk) != 0) {
    if (errno != ENOENT || !place.has_relative_path()) {
      return absl::ErrnoToStatus(errno,
                                 absl::StrCat(folder, ": reading the free space of the disk"));
    }
    place = place.parent_path();
  }
  return disk.f_bavail * disk.f_frsize;
}

absl::Status CheckFree(const std::string& folder, uint64_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const uint64_t free, FreeBytes(folder));
  if (bytes <= free) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "copies of the data need ", bytes, " bytes in ", folder, ", but the disk has ", free,
      " bytes free: free space there, or set ", kFolderVariable, " to a folder on another disk"));
}

// Makes one attempt to copy a file. Returns ABORTED if the content that arrives does not match the
// store's MD5, in which case another attempt may succeed. Returns DATA_LOSS if the file in the
// store has been replaced.
absl::Status Copy(Storage& storage, const std::string& location, const StoredEntry& entry,
                  const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<StoredFile> source, storage.OpenListed(location, entry));
  ASSIGN_OR_RETURN(FileWriter target, FileWriter::Create(path));
  Digest digest = Digest::Md5();
  std::vector<uint8_t> piece;
  for (uint64_t position = 0; position < entry.size; position += piece.size()) {
    piece.resize(std::min(kPieceBytes, entry.size - position));
    RETURN_IF_ERROR(source->ReadAt(position, piece));
    RETURN_IF_ERROR(target.Append(piece));
    digest.Update(piece);
  }
  const std::string arrived = digest.Hex();
  if (!arrived.empty() && !source->md5().empty() && arrived != source->md5()) {
    // Open the object to learn whether it is encrypted, which a listing does not tell. The ETag of
    // an encrypted object is not an MD5.
    ASSIGN_OR_RETURN(source, storage.Open(location));
    if (!source->md5().empty()) {
      return absl::AbortedError(absl::StrCat(location, ": arrived with the MD5 ", arrived,
                                             ", but the store says ", source->md5()));
    }
  }
  return target.Finish();
}

}  // namespace

absl::StatusOr<std::string> LocalCopies::Get(const std::string& location) {
  ASSIGN_OR_RETURN(const StoredEntry entry, Find(location));
  std::string path = PathOf(location, entry);
  if (!IsThere(path, entry.size)) {
    RETURN_IF_ERROR(AsReading(Fetch(location, entry, path)));
  }
  return path;
}

bool LocalCopies::Has(const std::string& location) const {
  const std::optional<StoredEntry> known = Known(location);
  return known.has_value() && IsThere(PathOf(location, *known), known->size);
}

std::optional<StoredEntry> LocalCopies::Known(const std::string& location) const {
  MutexLock lock(mutex_);
  const auto known = entries_.find(location);
  return known == entries_.end() ? std::nullopt : std::optional(known->second);
}

absl::StatusOr<std::vector<StoredEntry>> LocalCopies::List(const std::string& folder) {
  ASSIGN_OR_RETURN(Storage* const storage, StorageOf(folder));
  auto entries = storage->Entries(folder);
  if (!entries.ok()) return AsReading(entries.status());
  MutexLock lock(mutex_);
  for (const StoredEntry& entry : *entries) {
    if (!entry.is_folder) entries_.emplace(absl::StrCat(folder, "/", entry.name), entry);
  }
  return entries;
}

absl::Status LocalCopies::CheckRoom(std::span<const std::string> locations) {
  uint64_t bytes = 0;
  for (const std::string& location : locations) {
    const absl::StatusOr<StoredEntry> entry = Find(location);
    if (absl::IsNotFound(entry.status())) continue;
    RETURN_IF_ERROR(entry.status());
    if (!IsThere(PathOf(location, *entry), entry->size)) bytes += entry->size;
  }
  return CheckFree(folder_, bytes);
}

absl::StatusOr<StoredEntry> LocalCopies::Find(const std::string& location) {
  if (std::optional<StoredEntry> known = Known(location)) return *std::move(known);
  ASSIGN_OR_RETURN(Storage* const storage, StorageOf(location));
  const auto file = storage->Open(location);
  if (absl::IsNotFound(file.status())) {
    return Annotate(file.status(), absl::StrCat(location, ": no such object, or no such bucket"));
  }
  if (!file.ok()) return AsReading(file.status());
  StoredEntry entry{.size = (*file)->size(), .version = (*file)->version()};
  MutexLock lock(mutex_);
  return entries_.emplace(location, std::move(entry)).first->second;
}

std::string LocalCopies::PathOf(const std::string& location, const StoredEntry& entry) const {
  const std::string digest =
      HexSha256(absl::StrCat(location, "\n", entry.version, "\n", entry.size));
  return absl::StrCat(folder_, "/", digest.substr(0, 2), "/", digest.substr(2));
}

absl::Status LocalCopies::MakeFolderOf(const std::string& path) const {
  RETURN_IF_ERROR(MakeFolders(fs::path(folder_).parent_path().string()));
  // Only this user may read the copies, because other users may not have access to the store.
  if (mkdir(folder_.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    return absl::ErrnoToStatus(errno, absl::StrCat("making the folder '", folder_, "'"));
  }
  return MakeFolders(fs::path(path).parent_path().string());
}

absl::Status LocalCopies::Fetch(const std::string& location, const StoredEntry& entry,
                                const std::string& path) const {
  RETURN_IF_ERROR(
      Annotate(MakeFolderOf(path), absl::StrCat("keeping a copy of ", location, " (",
                                                kFolderVariable, " can name another folder)")));
  const CopyLock lock(folder_ + "/lock", location, RequestDeadline(entry.size) + kRetriesAtMost);
  if (IsThere(path, entry.size)) return absl::OkStatus();
  RETURN_IF_ERROR(CheckFree(folder_, entry.size));
  ASSIGN_OR_RETURN(Storage* const storage, StorageOf(location));
  for (int attempt = 1;; ++attempt) {
    const absl::Status status = Copy(*storage, location, entry, path);
    if (!absl::IsAborted(status)) return status;
    if (attempt == kAttempts) return absl::DataLossError(status.message());
    spdlog::warn("{}; fetching it again", std::string(status.message()));
  }
}

absl::StatusOr<std::string> CopiesFolder(const EnvironmentLookup& look_up) {
  if (const auto folder = look_up(kFolderVariable)) return *folder;
  if (const auto cache = look_up("XDG_CACHE_HOME")) return *cache + "/leeway/data";
  if (const auto home = look_up("HOME")) return *home + "/.cache/leeway/data";
  return absl::InvalidArgumentError(
      absl::StrCat("data in an object store are copied to this machine: set ", kFolderVariable,
                   " to a folder for the copies"));
}

absl::StatusOr<LocalCopies*> ProcessCopies() {
  static auto* const copies = [] {
    absl::StatusOr<std::string> folder = CopiesFolder(LookUpEnvironment);
    using Made = absl::StatusOr<std::unique_ptr<LocalCopies>>;
    return new Made(folder.ok() ? Made(std::make_unique<LocalCopies>(*std::move(folder)))
                                : Made(folder.status()));
  }();
  RETURN_IF_ERROR(copies->status());
  return (*copies)->get();
}

}  // namespace leeway
