#include "common/storage/storage.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "common/mutex.h"
#include "common/object_store/address.h"
#include "common/status.h"
#include "common/storage/folder_storage.h"
#include "common/storage/object_storage.h"

namespace leeway {
namespace {

constexpr uint64_t kCopyBytes = 4 << 20;

// The storages of this process, by the prefix of their locations.
class Mounts {
 public:
  // Returns the storage of a location, or null if no storage is mounted there.
  std::shared_ptr<Storage> Find(const std::string& location) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    for (const auto& [prefix, storage] : mounted_) {
      if (absl::StartsWith(location, prefix)) return storage;
    }
    return nullptr;
  }
  // Adds a storage and returns it. If another thread has added a storage for the prefix meanwhile,
  // returns that other storage.
  std::shared_ptr<Storage> Add(const std::string& prefix, std::shared_ptr<Storage> storage)
      EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return mounted_.emplace(prefix, std::move(storage)).first->second;
  }
  void Replace(const std::string& prefix, std::shared_ptr<Storage> storage) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (auto before = mounted_[prefix]) replaced_.push_back(std::move(before));
    mounted_[prefix] = std::move(storage);
  }

 private:
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<Storage>> mounted_ GUARDED_BY(mutex_);
  // Storages that were replaced, which are kept because other threads may still use them.
  std::vector<std::shared_ptr<Storage>> replaced_ GUARDED_BY(mutex_);
};

// Returns the mounts of the process. They are never destroyed, because threads may outlive main.
Mounts& ProcessMounts() {
  static auto* const mounts = new Mounts;
  return *mounts;
}

}  // namespace

void SortByName(std::vector<StoredEntry>& entries) {
  std::ranges::sort(entries, {}, &StoredEntry::name);
}

absl::StatusOr<Storage*> StorageOf(const std::string& location) {
  static auto* const folders = new FolderStorage;
  if (const auto mounted = ProcessMounts().Find(location)) return mounted.get();
  if (!IsObjectLocation(location)) return folders;
  ASSIGN_OR_RETURN(const ObjectLocation parsed, ParseObjectLocation(location));
  ASSIGN_OR_RETURN(std::shared_ptr<Storage> made, MakeObjectStorage(parsed.bucket));
  // The prefix ends with a slash, so that it cannot match a bucket whose name begins with this
  // bucket's name.
  return ProcessMounts().Add(LocationText(parsed.bucket, "") + "/", std::move(made)).get();
}

void MountStorage(const std::string& prefix, std::shared_ptr<Storage> storage) {
  ProcessMounts().Replace(prefix, std::move(storage));
}

absl::StatusOr<std::string> NormalLocation(const std::string& location) {
  if (!IsObjectLocation(location)) return location;
  ASSIGN_OR_RETURN(const ObjectLocation parsed, ParseObjectLocation(location));
  return LocationText(parsed.bucket, parsed.key);
}

absl::StatusOr<std::vector<std::string>> Storage::List(const std::string& folder) {
  ASSIGN_OR_RETURN(std::vector<StoredEntry> entries, Entries(folder));
  std::vector<std::string> names;
  for (StoredEntry& entry : entries) names.push_back(std::move(entry.name));
  return names;
}

absl::StatusOr<std::vector<std::string>> ListStored(const std::string& folder) {
  ASSIGN_OR_RETURN(Storage* const storage, StorageOf(folder));
  return storage->List(folder);
}

absl::StatusOr<std::unique_ptr<StoredFile>> OpenStored(const std::string& location) {
  ASSIGN_OR_RETURN(Storage* const storage, StorageOf(location));
  return storage->Open(location);
}

absl::StatusOr<std::unique_ptr<StoredFileWriter>> CreateStored(const std::string& location) {
  ASSIGN_OR_RETURN(Storage* const storage, StorageOf(location));
  return storage->Create(location);
}

absl::StatusOr<std::string> ReadStored(const std::string& location, uint64_t max_bytes) {
  ASSIGN_OR_RETURN(const std::unique_ptr<StoredFile> file, OpenStored(location));
  if (file->size() > max_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("reading '", location, "': the file has ",
                                                     file->size(), " bytes; at most ", max_bytes,
                                                     " are allowed"));
  }
  std::string content(file->size(), '\0');
  RETURN_IF_ERROR(file->ReadAt(0, {reinterpret_cast<uint8_t*>(content.data()), content.size()}));
  return content;
}

absl::Status WriteStored(const std::string& location, std::string_view content) {
  ASSIGN_OR_RETURN(const std::unique_ptr<StoredFileWriter> file, CreateStored(location));
  RETURN_IF_ERROR(file->Append(BytesOf(content)));
  return file->Finish();
}

absl::Status CopyStored(const std::string& from, const std::string& to) {
  ASSIGN_OR_RETURN(const std::unique_ptr<StoredFile> source, OpenStored(from));
  ASSIGN_OR_RETURN(const std::unique_ptr<StoredFileWriter> target, CreateStored(to));
  std::vector<uint8_t> bytes;
  for (uint64_t position = 0; position < source->size(); position += bytes.size()) {
    bytes.resize(std::min(kCopyBytes, source->size() - position));
    RETURN_IF_ERROR(source->ReadAt(position, bytes));
    RETURN_IF_ERROR(target->Append(bytes));
  }
  return target->Finish();
}

}  // namespace leeway
