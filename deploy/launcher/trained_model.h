// A model as a checkpoint holds it: to evaluate, to export.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/buffer.h"
#include "leeway/v1/checkpoint.pb.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

struct TrainedModel {
  // The checkpoint's folder.
  std::string folder;
  v1::CheckpointManifest manifest;
  FloatBuffer weights;
};

// `path` is a checkpoint's folder or a run's; of a run, the checkpoint at `clock` or the newest one
// that verifies. NOT_FOUND if there is none.
absl::StatusOr<TrainedModel> LoadTrainedModel(const std::string& path,
                                              std::optional<uint64_t> clock = std::nullopt);

// Writes it as safetensors with the layers' names.
absl::Status ExportModel(const TrainedModel& model, const std::string& path);

struct TestResult {
  // Mean over the examples.
  double loss = 0;
  // Share of right classes; absent for a squared loss.
  std::optional<double> accuracy;
  uint64_t examples = 0;
};
// On the job's test data; absent if the job has none.
absl::StatusOr<std::optional<TestResult>> EvaluateModel(const v1::TrainingJob& job,
                                                        const std::string& data_dir,
                                                        std::span<const float> weights);

// "test accuracy 97.12 %  (loss 0.0934, 1,797 examples)".
std::string Describe(const TestResult& result);

}  // namespace leeway
