// What server 0 reads from the run folder, and writes to it, before it starts the coordinator.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "leeway/v1/checkpoint.pb.h"
#include "leeway/v1/coordinator.pb.h"
#include "leeway/v1/job.pb.h"
#include "server/coordinator/core/coordinator_options.h"

namespace leeway {

// Writes the job file unless it exists, so that the run folder shows what was run even without a
// launcher.
absl::Status KeepJobFile(const std::string& run_dir, const v1::TrainingJob& job);

// Returns the newest complete checkpoint, or nullopt if there is none.
absl::StatusOr<std::optional<CoordinatorOptions::Resumed>> NewestCheckpoint(
    const std::string& run_dir);
// Returns the checkpoint from which --resume continues. Returns NOT_FOUND if there is no
// checkpoint, and the errors of CheckGoesOn if the checkpoint does not fit the job.
absl::StatusOr<CoordinatorOptions::Resumed> FindCheckpoint(const std::string& run_dir,
                                                           const v1::TrainingJob& job);
// Returns ALREADY_EXISTS if the run folder has a checkpoint.
absl::Status CheckFresh(const std::string& run_dir);

// Returns the highest incarnation that a worker of the run may have had so far.
uint64_t IncarnationsBefore(const std::optional<v1::CoordinatorRecord>& record);
// Returns true if a job that has ended still has work to do.
bool MayGoOn(const v1::CoordinatorRecord& record);

// Returns the earlier evaluations, for early_stop. If the log is damaged, some evaluations may be
// missing, and the job then continues for longer.
std::vector<v1::EvaluationMetrics> EvaluationsBefore(const std::string& run_dir);

}  // namespace leeway
