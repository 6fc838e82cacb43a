// What a model is worth on the job's test data.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <nlohmann/json.hpp>

#include "absl/status/statusor.h"
#include "launcher/commands/learning.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

struct TestResult {
  // Mean over the examples.
  double loss = 0;
  // Share of right classes; absent for a squared loss.
  std::optional<double> accuracy;
  // Of more than ten classes: the label's is among the five with the highest scores.
  std::optional<double> top5_accuracy;
  // exp(loss), of models with a label at each position.
  std::optional<double> perplexity;
  // Of a squared loss (worker/model/regression_error.h).
  std::optional<double> mae;
  std::optional<double> r2;
  uint64_t examples = 0;
  // Of the best model that does not look at the input; absent for a plugin's loss.
  std::optional<Score> constant;
};
// On the job's test data; absent if the job has none.
absl::StatusOr<std::optional<TestResult>> EvaluateModel(const v1::TrainingJob& job,
                                                        const std::string& data_dir,
                                                        std::span<const float> weights);

// The same of the weights in a safetensors file (worker/formats/model_file.h) of the job's model.
absl::StatusOr<std::optional<TestResult>> EvaluateModelFile(const v1::TrainingJob& job,
                                                            const std::string& data_dir,
                                                            const std::string& path);

// Into what is written for scripts.
void AddResult(const TestResult& result, nlohmann::ordered_json& document);

// "test accuracy 97.12 %  (loss 0.0934, 1,797 examples)".
std::string Describe(const TestResult& result);

}  // namespace leeway
