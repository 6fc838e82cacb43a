// Checks that a job can run, before any of its processes starts: the job's data exist and fit the
// model, and the model can be built.
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
  // The training data, the backend and the model of rank 0.
  std::unique_ptr<TrainingData> data;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Model> model;
  // StepsPerEpoch() over all workers.
  uint64_t steps_per_epoch = 0;
  // The ranks without any examples. Empty if the servers lease the examples to the workers.
  std::vector<uint32_t> idle;
};

// Makes the checks that each worker would make at its start, for all workers at once. Errors name
// the place in the job, and the file and the place in the data.
absl::StatusOr<CheckedJob> CheckJob(const v1::TrainingJob& job, const JobPlaces& places,
                                    const std::string& data_dir);

// Checks that the update rule in the job of an external program can be made. This can fail for a
// plugin's rule. Returns OK if the program brings the rule.
absl::Status CheckRule(const v1::TrainingJob& job);

// If the job names initial weights, reads the whole file and checks that the weights fit `model`,
// which is the job's model.
absl::Status CheckInitial(const v1::TrainingJob& job, const JobPlaces& places,
                          const std::string& data_dir, const Model& model);

// Calls CheckJob, then CheckInitial.
absl::StatusOr<CheckedJob> CheckJobAndInitial(const PlacedJob& placed, const std::string& data_dir);

// Returns warnings about likely mistakes, such as "leeway: workers 2, 3 have no examples at all".
// They include inputs that are not normalised (input_warning.h). Each warning is a line that ends
// with a newline.
std::string WarningsOf(const v1::TrainingJob& job, const CheckedJob& checked);

}  // namespace leeway
