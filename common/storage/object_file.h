// One object of a store, read in windows.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/mutex.h"
#include "common/object_store/s3_client.h"
#include "common/storage/storage.h"

namespace leeway {

// Thread-safe; sends one request at a time.
class ObjectFile final : public StoredFile {
 public:
  ObjectFile(S3Client* client, std::string location, std::string key, ObjectInfo info)
      : client_(client),
        location_(std::move(location)),
        key_(std::move(key)),
        info_(std::move(info)) {}

  const std::string& location() const override { return location_; }
  uint64_t size() const override { return info_.size; }
  std::string version() const override { return info_.etag; }
  // The ETag of an object that was put in one request is its MD5.
  std::string md5() const override;
  absl::Status ReadAt(uint64_t position, std::span<uint8_t> target) const override EXCLUDES(mutex_);

 private:
  absl::Status Fill(uint64_t position) const REQUIRES(mutex_);

  S3Client* const client_;
  const std::string location_;
  const std::string key_;
  const ObjectInfo info_;
  mutable Mutex mutex_;
  // The window into the object, from `begin_` on. Files are mostly read from front to back, in
  // small pieces.
  mutable uint64_t begin_ GUARDED_BY(mutex_) = 0;
  mutable std::vector<uint8_t> window_ GUARDED_BY(mutex_);
};

}  // namespace leeway
