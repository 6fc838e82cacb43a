// Where the coordinator's part of a checkpoint goes, workers' states and the manifest, and its own
// record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "leeway/v1/checkpoint.pb.h"

namespace leeway {

// Thread-safe; the writers and readers that it gives out are not. Calls may block on files.
class CheckpointSink {
 public:
  // A file that appears, durably, with Finish, or not at all. As long as the writer lives its
  // folder stays.
  class StateWriter {
   public:
    virtual ~StateWriter() = default;
    virtual absl::Status Append(std::string_view data) = 0;
    virtual absl::StatusOr<v1::SavedShard> Finish() = 0;
  };
  class StateReader {
   public:
    virtual ~StateReader() = default;
    // Of which the state is.
    virtual uint64_t clock() const = 0;
    // Bytes in all.
    virtual uint64_t size() const = 0;
    // The next bytes, `bytes_max` of them at most; empty at the end.
    virtual absl::StatusOr<std::string> Read(size_t bytes_max) = 0;
  };

  virtual ~CheckpointSink() = default;

  struct StateOf {
    uint64_t clock = 0;
    uint32_t rank = 0;
    uint64_t incarnation = 0;
    uint64_t generation = 0;
  };
  // A rank's state in the folder of the cut at its clock. Each has a file of its own: a life that
  // was replaced may still be writing, and a complete checkpoint may hold the one of before.
  virtual absl::StatusOr<std::unique_ptr<StateWriter>> WriteWorkerState(const StateOf& state) = 0;
  // From the newest checkpoint; NOT_FOUND if there is none, or it holds none of this rank.
  // DATA_LOSS if what it holds is not there.
  virtual absl::StatusOr<std::unique_ptr<StateReader>> ReadWorkerState(uint32_t rank) = 0;
  // The file is durable under the same name in the folder of the cut at `to_clock` as well.
  virtual absl::Status AdoptWorkerState(uint64_t from_clock, const std::string& file,
                                        uint64_t to_clock) = 0;
  // All parts are durable: makes the checkpoint exist.
  virtual absl::Status WriteManifest(const v1::CheckpointManifest& manifest) = 0;
  // Removes checkpoints that are older than the job keeps, and what is left of unfinished ones: but
  // none where a state is being written, and none of `spared()`, by clock, which is asked when no
  // state can come to the others any more.
  virtual absl::Status RemoveOld(const std::function<std::set<uint64_t>()>& spared) = 0;
  // Takes the place of the record before, durably.
  virtual absl::Status WriteRecord(const v1::CoordinatorRecord& record) = 0;
};

}  // namespace leeway
