// Writes one object, in a single request if it is small, otherwise in parts.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/object_store/s3_client.h"
#include "common/storage/storage.h"

namespace leeway {

// Buffers one part, and sends it on the caller's thread when it is full and more bytes follow.
class ObjectWriter final : public StoredFileWriter {
 public:
  // `mark` must differ from the marks of all other writers.
  ObjectWriter(S3Client* client, std::string location, std::string key, std::string mark)
      : client_(client),
        location_(std::move(location)),
        key_(std::move(key)),
        mark_(std::move(mark)) {}
  // Aborts an unfinished upload.
  ~ObjectWriter() override;

  absl::Status Append(std::span<const uint8_t> bytes) override;
  absl::Status Finish() override;

 private:
  uint64_t PartBytes() const;
  absl::Status SendPart();
  absl::Status Complete();
  void Abort();

  S3Client* const client_;
  const std::string location_;
  const std::string key_;
  const std::string mark_;
  std::vector<uint8_t> part_;
  // The id of the upload. Empty before an upload begins and after it ends.
  std::string upload_;
  std::vector<std::string> etags_;
  bool finished_ = false;
  absl::Status status_;
};

}  // namespace leeway
