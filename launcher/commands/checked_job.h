// That a job can run, found out before anything is started for it: its data are there and fit, its
// model can be built.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "config/job.h"
#include "worker/data/sources/training_data.h"
#include "worker/model/model.h"

namespace leeway {

struct CheckedJob {
  // Rank 0's.
  std::unique_ptr<TrainingData> data;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Model> model;
  // StepsPerEpoch() of all workers.
  uint64_t steps_per_epoch = 0;
  // Ranks without any example, where each has its own.
  std::vector<uint32_t> idle;
};

// What a worker would find out by itself, of all workers. Errors name the place in the job, and
// file and place of the data.
absl::StatusOr<CheckedJob> CheckJob(const v1::TrainingJob& job, const JobPlaces& places,
                                    const std::string& data_dir);

// What an external job has of an update rule of its own can be made: a plugin's may not.
absl::Status CheckRule(const v1::TrainingJob& job);

// That the weights which the job starts from, if it names any, are those of `model`, its model: the
// whole file is read.
absl::Status CheckInitial(const v1::TrainingJob& job, const JobPlaces& places,
                          const std::string& data_dir, const Model& model);

// CheckJob, then CheckInitial.
absl::StatusOr<CheckedJob> CheckJobAndInitial(const PlacedJob& placed, const std::string& data_dir);

// What is likely a mistake, a line each, with their ends: "leeway: workers 2 and 3 have no examples
// at all: ...", and inputs that are not normalised (input_warning.h).
std::string WarningsOf(const v1::TrainingJob& job, const CheckedJob& checked);

}  // namespace leeway
