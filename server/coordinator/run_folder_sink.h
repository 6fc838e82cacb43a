// The coordinator's part of the checkpoints in a run folder (server/checkpoint has the formats).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "server/coordinator/checkpoint_sink.h"
#include "server/coordinator/coordinator_core.h"

namespace leeway {

class RunFolderSink final : public CheckpointSink {
 public:
  // `keep`: how many complete checkpoints stay. `resumed`: where the job goes on from, if it does.
  RunFolderSink(std::string run_dir, uint64_t job_id, uint32_t keep,
                std::optional<CoordinatorOptions::Resumed> resumed);

  absl::StatusOr<std::unique_ptr<StateWriter>> WriteWorkerState(uint64_t clock, uint32_t rank,
                                                                uint64_t incarnation) override;
  absl::StatusOr<std::unique_ptr<StateReader>> ReadWorkerState(uint32_t rank) override;
  absl::Status AdoptWorkerState(uint64_t from_clock, const std::string& file,
                                uint64_t to_clock) override;
  absl::Status WriteManifest(const v1::CheckpointManifest& manifest) override;

 private:
  const std::string run_dir_;
  const uint64_t job_id_;
  const uint32_t keep_;
  const std::optional<CoordinatorOptions::Resumed> resumed_;
};

}  // namespace leeway
