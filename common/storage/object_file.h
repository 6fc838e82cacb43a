// One object of a store, which is read in large pieces (windows).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/mutex.h"
#include "common/object_store/s3_client.h"
#include "common/storage/storage.h"

namespace leeway {

// Thread-safe. Sends one request at a time.
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
  // Returns the MD5 of an object that was put in one request, which is its ETag. For other objects
  // the result is empty.
  std::string md5() const override;
  absl::Status ReadAt(uint64_t position, std::span<uint8_t> target) const override EXCLUDES(mutex_);

 private:
  absl::Status Fill(uint64_t position) const REQUIRES(mutex_);

  S3Client* const client_;
  const std::string location_;
  const std::string key_;
  const ObjectInfo info_;
  mutable Mutex mutex_;
  // The bytes of the object from `begin_` on that were read last. They serve the next reads,
  // because files are mostly read from the beginning to the end, in small pieces.
  mutable uint64_t begin_ GUARDED_BY(mutex_) = 0;
  mutable std::vector<uint8_t> window_ GUARDED_BY(mutex_);
};

}  // namespace leeway
