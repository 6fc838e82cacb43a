// One object in the making: a single request if it is small, an upload in parts otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/object_store/s3_client.h"
#include "common/storage/storage.h"

namespace leeway {

// Sends each part when it is full, in the caller's thread. Holds one part.
class ObjectWriter final : public StoredFileWriter {
 public:
  // `mark`: unlike that of any other writer.
  ObjectWriter(S3Client* client, std::string location, std::string key, std::string mark)
      : client_(client),
        location_(std::move(location)),
        key_(std::move(key)),
        mark_(std::move(mark)) {}
  // Aborts what was not finished.
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
  // Empty: no upload was begun, or it is over.
  std::string upload_;
  std::vector<std::string> etags_;
  bool finished_ = false;
  absl::Status status_;
};

}  // namespace leeway
