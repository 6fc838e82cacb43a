// The interface through which the coordinator writes its part of a checkpoint (the workers' states
// and the manifest) and its own record.
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

// Thread-safe, but the writers and readers that the sink returns are not. Calls may wait for files.
class CheckpointSink {
 public:
  // Writes one file. The file appears, durable and complete, when Finish succeeds; otherwise it
  // never appears. The checkpoint's folder is not removed while the writer exists.
  class StateWriter {
   public:
    virtual ~StateWriter() = default;
    virtual absl::Status Append(std::string_view data) = 0;
    virtual absl::StatusOr<v1::SavedShard> Finish() = 0;
  };
  class StateReader {
   public:
    virtual ~StateReader() = default;
    // The clock of the saved state.
    virtual uint64_t clock() const = 0;
    // The size of the state in bytes.
    virtual uint64_t size() const = 0;
    // Returns the next bytes, at most `bytes_max`; an empty string at the end.
    virtual absl::StatusOr<std::string> Read(size_t bytes_max) = 0;
  };

  virtual ~CheckpointSink() = default;

  struct StateOf {
    uint64_t clock = 0;
    uint32_t rank = 0;
    uint64_t incarnation = 0;
    uint64_t generation = 0;
  };
  // Begins to write a rank's state into the folder of the cut at the state's clock. Each state has
  // a file of its own, because an earlier life of the rank may still be writing its state, and a
  // complete checkpoint may hold that life's file.
  virtual absl::StatusOr<std::unique_ptr<StateWriter>> WriteWorkerState(const StateOf& state) = 0;
  // Opens a rank's state in the newest checkpoint. Returns NOT_FOUND if no checkpoint exists, or if
  // the newest checkpoint holds no state of this rank. Returns DATA_LOSS if the file that the
  // checkpoint names is missing.
  virtual absl::StatusOr<std::unique_ptr<StateReader>> ReadWorkerState(uint32_t rank) = 0;
  // Copies a state's file from the folder of the cut at `from_clock` to the folder of the cut at
  // `to_clock`, under the same name, and makes the copy durable.
  virtual absl::Status AdoptWorkerState(uint64_t from_clock, const std::string& file,
                                        uint64_t to_clock) = 0;
  // Writes the manifest, which makes the checkpoint exist. All parts of the checkpoint must be
  // durable already.
  virtual absl::Status WriteManifest(const v1::CheckpointManifest& manifest) = 0;
  // Removes checkpoints that are older than those the job keeps, and the remains of unfinished
  // checkpoints. Keeps folders in which a state is being written, and the folders of the clocks
  // that `spared()` returns. Makes sure that no state can be added to the other folders before it
  // calls `spared`.
  virtual absl::Status RemoveOld(const std::function<std::set<uint64_t>()>& spared) = 0;
  // Replaces the previous record, and makes the new one durable.
  virtual absl::Status WriteRecord(const v1::CoordinatorRecord& record) = 0;
};

}  // namespace leeway
