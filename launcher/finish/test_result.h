// Evaluates a model on the job's test data.
#pragma once

#include <optional>
#include <span>
#include <string>

#include <nlohmann/json.hpp>

#include "absl/status/statusor.h"
#include "launcher/finish/learning.h"
#include "leeway/v1/job.pb.h"
#include "run/summary.h"

namespace leeway {

struct EvaluatedModel {
  TestResult result;
  // The score of the best model that ignores the input. Absent for a plugin's loss.
  std::optional<Score> constant;
};
// Returns the scores of the model and of the best constant, or nothing if the constant's score is
// unknown.
std::optional<Tested> TestedBy(const EvaluatedModel& model);

// Evaluates the weights on the job's test data. The result is absent if the job has no test data.
absl::StatusOr<std::optional<EvaluatedModel>> EvaluateModel(const v1::TrainingJob& job,
                                                            const std::string& data_dir,
                                                            std::span<const float> weights);

// Does the same with the weights in a safetensors file (worker/formats/model_file.h).
absl::StatusOr<std::optional<EvaluatedModel>> EvaluateModelFile(const v1::TrainingJob& job,
                                                                const std::string& data_dir,
                                                                const std::string& path);

void AddResult(const TestResult& result, nlohmann::ordered_json& document);

// Describes the result, for example "test accuracy 97.12 %  (loss 0.0934, 1,797 examples)".
// `examples` is the text after the last comma, such as "1,797 examples", or empty.
std::string Describe(const TestResult& result, const std::string& examples);

}  // namespace leeway
