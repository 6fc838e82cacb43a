// Writes the coordinator's part of the checkpoints, and its record, to a run folder in any storage
// (server/checkpoint has the formats).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/mutex.h"
#include "leeway/v1/checkpoint.pb.h"
#include "server/coordinator/checkpoint_sink.h"
#include "server/coordinator/folder_use.h"

namespace leeway {

class RunFolderSink final : public CheckpointSink {
 public:
  // `keep` is the number of complete checkpoints that stay. `newest` is the checkpoint from which
  // the job continues, if there is one.
  RunFolderSink(std::string run_dir, uint64_t job_id, uint32_t keep,
                std::optional<v1::CheckpointManifest> newest);

  absl::StatusOr<std::unique_ptr<StateWriter>> WriteWorkerState(const StateOf& state) override;
  absl::StatusOr<std::unique_ptr<StateReader>> ReadWorkerState(uint32_t rank) override;
  absl::Status AdoptWorkerState(uint64_t from_clock, const std::string& file,
                                uint64_t to_clock) override;
  absl::Status WriteManifest(const v1::CheckpointManifest& manifest) override;
  absl::Status RemoveOld(const std::function<std::set<uint64_t>()>& spared) override;
  absl::Status WriteRecord(const v1::CoordinatorRecord& record) override;

 private:
  // A state in the newest checkpoint. The checkpoint is not removed while `hold` exists.
  struct StateFile {
    std::string path;
    FolderUse::Hold hold;
  };
  absl::StatusOr<StateFile> FindWorkerState(uint32_t rank);

  const std::string run_dir_;
  const uint64_t job_id_;
  const uint32_t keep_;
  FolderUse folders_;
  Mutex mutex_;
  std::optional<v1::CheckpointManifest> newest_ GUARDED_BY(mutex_);
};

}  // namespace leeway
