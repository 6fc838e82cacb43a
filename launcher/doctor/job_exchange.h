// Measures the exchanges of a given job alone: its update, mode, compression, transport and blocks.
// Uses real servers, and the benchmark's own workers, which compute nothing.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "leeway/v1/coordinator.pb.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

struct JobExchangeOptions {
  v1::TrainingJob job;
  // The schema of the job's model.
  v1::ModelSchema schema;
  // The numbers of processes that take part, at most the job's numbers.
  uint32_t servers = 1;
  uint32_t workers = 1;
  std::string program_folder;
  double seconds = 0.5;
};

// The figures of one clock of all workers that took part. They are medians.
struct JobExchange {
  double seconds = 0;
  // Processor time, the sum over all processes.
  double cpu_seconds = 0;
  uint64_t block_bytes = 0;
};

absl::StatusOr<JobExchange> MeasureJobExchange(const JobExchangeOptions& options);

// Returns the job in the form that is measured. It neither ends nor evaluates nor pauses, and has
// these numbers of processes.
v1::TrainingJob EndlessJob(const v1::TrainingJob& job, uint32_t servers, uint32_t workers);

// The same for workers that compute nothing. No worker is slow, late or lost, or reads data.
v1::TrainingJob IdleJob(const v1::TrainingJob& job, uint32_t servers, uint32_t workers);

}  // namespace leeway
