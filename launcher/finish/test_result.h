// Evaluates a model on the job's test data.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <nlohmann/json.hpp>

#include "absl/status/statusor.h"
#include "launcher/finish/learning.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

struct TestResult {
  // The mean loss over the examples.
  double loss = 0;
  // The share of examples with the right class. Absent for a squared loss.
  std::optional<double> accuracy;
  // The share of examples whose class is among the five with the highest scores. Present only with
  // more than ten classes.
  std::optional<double> top5_accuracy;
  // exp(loss). Present only for models with a label at each position.
  std::optional<double> perplexity;
  // Present only for a squared loss (worker/model/regression_error.h).
  std::optional<double> mae;
  std::optional<double> r2;
  uint64_t examples = 0;
  // The score of the best model that ignores the input. Absent for a plugin's loss.
  std::optional<Score> constant;
};
// Evaluates the weights on the job's test data. The result is absent if the job has no test data.
absl::StatusOr<std::optional<TestResult>> EvaluateModel(const v1::TrainingJob& job,
                                                        const std::string& data_dir,
                                                        std::span<const float> weights);

// Evaluates the weights of the job's model in a safetensors file (worker/formats/model_file.h) in
// the same way.
absl::StatusOr<std::optional<TestResult>> EvaluateModelFile(const v1::TrainingJob& job,
                                                            const std::string& data_dir,
                                                            const std::string& path);

// Adds the result to a JSON document for scripts.
void AddResult(const TestResult& result, nlohmann::ordered_json& document);

// Describes the result, for example "test accuracy 97.12 %  (loss 0.0934, 1,797 examples)".
std::string Describe(const TestResult& result);

}  // namespace leeway
