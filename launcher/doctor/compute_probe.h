// How long the steps of a job's workers take on this machine, without any exchange: the real
// batches through the real model, in as many processes at once.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "leeway/v1/coordinator.pb.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

struct ComputeFigures {
  // That took part.
  uint32_t workers = 0;
  v1::ModelSchema schema;
  // Of the first layer that has any.
  uint64_t first_layer_parameters = 0;
  uint64_t steps_per_epoch = 0;
  // Of one worker's step while all compute; and of its processor time.
  double step_seconds = 0;
  double step_cpu_seconds = 0;
};

// `workers` processes, at most as many as the job has, or fewer (ProcessesToMeasure). Errors are
// those of the job's data and model.
absl::StatusOr<ComputeFigures> MeasureCompute(const v1::TrainingJob& job,
                                              const std::string& data_dir, uint32_t workers,
                                              uint64_t memory_bytes, double seconds);

}  // namespace leeway
