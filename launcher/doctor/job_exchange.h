// Measures only the exchanges of a job, with the job's update, mode, compression, transport and
// blocks. Uses real servers, and the benchmark's own workers, which compute nothing.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "leeway/v1/coordinator.pb.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

struct JobExchangeOptions {
  v1::TrainingJob job;
  v1::ModelSchema schema;
  // How many servers and workers take part, at most as many as the job has.
  uint32_t servers = 1;
  uint32_t workers = 1;
  std::string program_folder;
  double seconds = 0.5;
};

// The figures of one clock, as medians over the clocks of all workers that took part.
struct JobExchange {
  double seconds = 0;
  // The processor time of all processes together.
  double cpu_seconds = 0;
  uint64_t block_bytes = 0;
};

absl::StatusOr<JobExchange> MeasureJobExchange(const JobExchangeOptions& options);

// Returns the job in the form that is measured, with these numbers of processes. This job does not
// end, evaluate or pause.
v1::TrainingJob EndlessJob(const v1::TrainingJob& job, uint32_t servers, uint32_t workers);

// Returns the job of EndlessJob for workers that compute nothing: no worker emulates slowness or
// loss, or reads data.
v1::TrainingJob IdleJob(const v1::TrainingJob& job, uint32_t servers, uint32_t workers);

}  // namespace leeway
