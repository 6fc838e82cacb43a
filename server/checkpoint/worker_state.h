// A file with the state that a worker keeps between clocks (local weights, optimizer slots), saved
// for a cut. Only the worker understands the data, but any reader can tell whether the file is
// complete. All numbers are little-endian, without padding:
//   prefix   8  magic "LWWORKR1"
//            8  job id        8  clock        4  rank
//            4  CRC-32 of the 28 bytes before
//   data
//   footer   8  length of the data
//            4  CRC-32 of the data
//            8  magic "LWWKEND1"
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/storage/storage.h"
#include "leeway/v1/coordinator.pb.h"
#include "server/checkpoint/saved_file.h"

namespace leeway {

struct WorkerStateId {
  uint64_t job_id = 0;
  uint64_t clock = 0;
  uint32_t rank = 0;
  bool operator==(const WorkerStateId&) const = default;
};

// Writes the file chunk by chunk. The file appears only when Finish has made it durable. Not
// thread-safe.
class WorkerStateWriter {
 public:
  static absl::StatusOr<WorkerStateWriter> Create(const std::string& path, const WorkerStateId& id);

  absl::Status Append(std::string_view data);
  // Makes the file durable. Returns its entry for the manifest.
  absl::StatusOr<v1::SavedShard> Finish();

 private:
  explicit WorkerStateWriter(SavedFileWriter file) : file_(std::move(file)) {}

  SavedFileWriter file_;
  uint64_t length_ = 0;
  uint32_t crc_ = 0;
};

// Writes the whole file at once.
absl::StatusOr<v1::SavedShard> WriteWorkerState(const std::string& path, const WorkerStateId& id,
                                                std::string_view data);

// Reads the file in pieces. Thread-safe.
class WorkerStateReader {
 public:
  // Opens the file and checks all of it. Returns DATA_LOSS, naming the file and the byte, if the
  // file is damaged.
  static absl::StatusOr<WorkerStateReader> Open(const std::string& path);

  const WorkerStateId& id() const { return id_; }
  // The number of data bytes.
  uint64_t size() const { return size_; }
  // Reads at most `max_bytes` from `position` on. Returns an empty string at the end.
  absl::StatusOr<std::string> Read(uint64_t position, uint64_t max_bytes) const;

 private:
  WorkerStateReader(std::unique_ptr<StoredFile> file, const WorkerStateId& id, uint64_t size)
      : file_(std::move(file)), id_(id), size_(size) {}
  absl::Status CheckData(uint32_t crc) const;

  std::unique_ptr<StoredFile> file_;
  WorkerStateId id_;
  uint64_t size_;
};

}  // namespace leeway
