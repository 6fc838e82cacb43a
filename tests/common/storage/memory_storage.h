// A storage in this process's memory, with faults that a test injects.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/files/sha256.h"
#include "common/mutex.h"
#include "common/status.h"
#include "common/storage/storage.h"

namespace leeway {

class MemoryStorage final : public Storage {
 public:
  // Asked before each operation; its error becomes the operation's. The operations are called open,
  // create, append, finish, size, list, make, remove and prepare.
  std::function<absl::Status(const std::string& operation, const std::string& location)> fault =
      [](const std::string&, const std::string&) { return absl::OkStatus(); };

  absl::StatusOr<std::unique_ptr<StoredFile>> Open(const std::string& location) override {
    RETURN_IF_ERROR(fault("open", location));
    ASSIGN_OR_RETURN(std::string content, Find(location));
    return std::make_unique<File>(location, std::move(content));
  }
  absl::StatusOr<std::unique_ptr<StoredFileWriter>> Create(const std::string& location) override {
    RETURN_IF_ERROR(fault("create", location));
    return std::make_unique<Writer>(this, location);
  }
  absl::StatusOr<uint64_t> SizeOf(const std::string& location) override {
    RETURN_IF_ERROR(fault("size", location));
    ASSIGN_OR_RETURN(const std::string content, Find(location));
    return content.size();
  }
  absl::StatusOr<std::vector<StoredEntry>> Entries(const std::string& folder) override {
    RETURN_IF_ERROR(fault("list", folder));
    MutexLock lock(mutex_);
    std::map<std::string, StoredEntry> found;
    for (const auto& [location, content] : files_) {
      if (!absl::StartsWith(location, folder + "/")) continue;
      const std::string below = location.substr(folder.size() + 1);
      const std::string name = below.substr(0, below.find('/'));
      const bool is_folder = name.size() < below.size();
      found[name] = {name, is_folder, is_folder ? 0 : content.size(),
                     is_folder ? "" : HexSha256(content)};
    }
    std::vector<StoredEntry> entries;
    for (auto& [name, entry] : found) entries.push_back(std::move(entry));
    return entries;
  }
  absl::Status MakeFolder(const std::string& folder) override { return fault("make", folder); }
  absl::Status RemoveFile(const std::string& location) override {
    RETURN_IF_ERROR(fault("remove", location));
    MutexLock lock(mutex_);
    files_.erase(location);
    return absl::OkStatus();
  }
  absl::Status RemoveFolder(const std::string& folder) override {
    RETURN_IF_ERROR(fault("remove", folder));
    MutexLock lock(mutex_);
    std::erase_if(files_,
                  [&](const auto& file) { return absl::StartsWith(file.first, folder + "/"); });
    return absl::OkStatus();
  }
  absl::Status RemoveUnfinished(const std::string& folder) override { return absl::OkStatus(); }
  absl::Status Prepare(const std::string& folder) override { return fault("prepare", folder); }

  // Returns the current files.
  std::map<std::string, std::string> files() const {
    MutexLock lock(mutex_);
    return files_;
  }

 private:
  class File final : public StoredFile {
   public:
    File(std::string location, std::string content)
        : location_(std::move(location)), content_(std::move(content)) {}
    const std::string& location() const override { return location_; }
    uint64_t size() const override { return content_.size(); }
    std::string version() const override { return HexSha256(content_); }
    absl::Status ReadAt(uint64_t position, std::span<uint8_t> target) const override {
      if (position > content_.size() || target.size() > content_.size() - position) {
        return absl::DataLossError(absl::StrCat("reading '", location_, "': it ends before"));
      }
      std::copy_n(content_.data() + position, target.size(), target.data());
      return absl::OkStatus();
    }

   private:
    const std::string location_;
    const std::string content_;
  };

  class Writer final : public StoredFileWriter {
   public:
    Writer(MemoryStorage* storage, std::string location)
        : storage_(storage), location_(std::move(location)) {}
    absl::Status Append(std::span<const uint8_t> bytes) override {
      RETURN_IF_ERROR(status_);
      status_ = storage_->fault("append", location_);
      content_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return status_;
    }
    absl::Status Finish() override {
      RETURN_IF_ERROR(status_);
      RETURN_IF_ERROR(storage_->fault("finish", location_));
      status_ = absl::FailedPreconditionError(absl::StrCat("'", location_, "' was finished"));
      MutexLock lock(storage_->mutex_);
      storage_->files_[location_] = std::move(content_);
      return absl::OkStatus();
    }

   private:
    MemoryStorage* const storage_;
    const std::string location_;
    std::string content_;
    absl::Status status_;
  };

  absl::StatusOr<std::string> Find(const std::string& location) {
    MutexLock lock(mutex_);
    const auto found = files_.find(location);
    if (found != files_.end()) return found->second;
    return absl::NotFoundError(absl::StrCat("'", location, "': there is no such file"));
  }

  mutable Mutex mutex_;
  std::map<std::string, std::string> files_ GUARDED_BY(mutex_);
};

}  // namespace leeway
