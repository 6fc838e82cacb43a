// The exchanges of a given job, alone: its update, mode, compression, transport and blocks, by as
// many real servers and workers of the benchmark's own, which compute nothing.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "leeway/v1/coordinator.pb.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

struct JobExchangeOptions {
  v1::TrainingJob job;
  // Of its model.
  v1::ModelSchema schema;
  // How many take part: at most as many as the job has.
  uint32_t servers = 1;
  uint32_t workers = 1;
  std::string program_folder;
  double seconds = 0.5;
};

// Of one clock of all the workers that took part; medians.
struct JobExchange {
  double seconds = 0;
  // Of processor time, all processes added.
  double cpu_seconds = 0;
  uint64_t block_bytes = 0;
};

absl::StatusOr<JobExchange> MeasureJobExchange(const JobExchangeOptions& options);

// The job as it is measured: it neither ends nor evaluates nor pauses, and has so many processes.
v1::TrainingJob EndlessJob(const v1::TrainingJob& job, uint32_t servers, uint32_t workers);

// The same for workers that compute nothing: none of them is slow, late or lost, or reads data.
v1::TrainingJob IdleJob(const v1::TrainingJob& job, uint32_t servers, uint32_t workers);

}  // namespace leeway
