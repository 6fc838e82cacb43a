// Measures how long the steps of a job's workers take on this machine, without any exchange. It
// runs the real batches through the real model, in several processes at once.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "leeway/v1/coordinator.pb.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

struct ComputeFigures {
  // The number of workers that took part.
  uint32_t workers = 0;
  v1::ModelSchema schema;
  // The parameters of the first layer that has parameters.
  uint64_t first_layer_parameters = 0;
  uint64_t steps_per_epoch = 0;
  // The wall time of one worker's step while all measured workers compute at the same time.
  double step_seconds = 0;
  // The processor time of the same step.
  double step_cpu_seconds = 0;
};

// Starts `workers` processes, at most the job's number of workers, or fewer if the memory does not
// suffice (ProcessesToMeasure). Returns the errors of the job's data and model.
absl::StatusOr<ComputeFigures> MeasureCompute(const v1::TrainingJob& job,
                                              const std::string& data_dir, uint32_t workers,
                                              uint64_t memory_bytes, double seconds);

}  // namespace leeway
