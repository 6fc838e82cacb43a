#include "launcher/finish/test_result.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/plugins/label_loss.h"
#include "common/status.h"
#include "common/text/format.h"
#include "worker/data/dataset.h"
#include "worker/data/sources/test_data.h"
#include "worker/device/make_backend.h"
#include "worker/formats/model_file.h"
#include "worker/model/model.h"

namespace leeway {
namespace {

// The number of examples that are evaluated at once. It limits the memory of the activations.
constexpr size_t kEvaluationBatch = 256;

struct Test {
  std::unique_ptr<Dataset> data;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Model> model;
};

// Opens the job's test data. In the result `data` is null if the job has no test data.
absl::StatusOr<Test> OpenTest(const v1::TrainingJob& job, const std::string& data_dir) {
  Test test;
  ASSIGN_OR_RETURN(test.data, OpenTestData(job, data_dir));
  if (test.data == nullptr) return test;
  ASSIGN_OR_RETURN(test.backend, MakeCpuBackend(job.workers()));
  ASSIGN_OR_RETURN(test.model, Model::Build(job.model(), test.data->shape(), test.data->classes(),
                                            *test.backend, test.data->labels_each()));
  return test;
}

// Returns the score of the best constant. Absent for a plugin's loss, whose best constant is
// unknown.
std::optional<Score> ConstantOf(v1::Loss loss, std::span<const float> labels) {
  if (loss == v1::LOSS_CUSTOM) return std::nullopt;
  return BestConstant(loss, labels);
}

absl::StatusOr<TestResult> EvaluateOn(const v1::TrainingJob& job, const Test& test,
                                      std::span<const float> weights) {
  double loss = 0;
  uint64_t correct = 0;
  uint64_t in_top5 = 0;
  std::vector<float> labels;
  RegressionError error;
  Batch batch;
  for (size_t first = 0; first < test.data->size(); first += kEvaluationBatch) {
    const size_t count = std::min(kEvaluationBatch, test.data->size() - first);
    RETURN_IF_ERROR(test.data->CopyBatch(first, count, batch));
    ASSIGN_OR_RETURN(const Model::Evaluation part, test.model->Evaluate(batch, weights));
    loss += part.loss_sum;
    correct += part.correct;
    in_top5 += part.in_top5;
    labels.insert(labels.end(), batch.labels.begin(), batch.labels.end());
    error.Add(part.error);
  }
  TestResult result{.loss = loss / static_cast<double>(test.data->size()),
                    .accuracy = {},
                    .top5_accuracy = {},
                    .perplexity = {},
                    .mae = error.mae(),
                    .r2 = error.r2(),
                    .examples = test.data->size(),
                    .constant = ConstantOf(job.model().loss(), labels)};
  const auto share = [&](uint64_t count) {
    return static_cast<double>(count) / static_cast<double>(std::max<size_t>(labels.size(), 1));
  };
  if (LabelLoss(job.model()) != v1::LOSS_SQUARED) result.accuracy = share(correct);
  if (test.model->graph().positions() > 1) result.perplexity = std::exp(result.loss);
  if (test.model->tells_top5()) result.top5_accuracy = share(in_top5);
  return result;
}

}  // namespace

absl::StatusOr<std::optional<TestResult>> EvaluateModel(const v1::TrainingJob& job,
                                                        const std::string& data_dir,
                                                        std::span<const float> weights) {
  ASSIGN_OR_RETURN(const Test test, OpenTest(job, data_dir));
  if (test.data == nullptr) return std::nullopt;
  if (test.model->schema().total() != weights.size()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the job's model has ", test.model->schema().total(), " parameters, the checkpoint ",
        weights.size(), ": the test data have another shape than the training data"));
  }
  return EvaluateOn(job, test, weights);
}

absl::StatusOr<std::optional<TestResult>> EvaluateModelFile(const v1::TrainingJob& job,
                                                            const std::string& data_dir,
                                                            const std::string& path) {
  ASSIGN_OR_RETURN(const Test test, OpenTest(job, data_dir));
  if (test.data == nullptr) return std::nullopt;
  ASSIGN_OR_RETURN(const FloatBuffer weights, ReadModelFile(path, job.model(), *test.model));
  return EvaluateOn(job, test, weights.span());
}

void AddResult(const TestResult& result, nlohmann::ordered_json& document) {
  const auto number = [](double value) {
    return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
  };
  document["test_loss"] = number(result.loss);
  if (result.accuracy.has_value()) document["test_accuracy"] = number(*result.accuracy);
  if (result.top5_accuracy.has_value()) {
    document["test_top5_accuracy"] = number(*result.top5_accuracy);
  }
  if (result.perplexity.has_value()) document["test_perplexity"] = number(*result.perplexity);
  if (result.mae.has_value()) document["test_mae"] = number(*result.mae);
  if (result.r2.has_value()) document["test_r2"] = number(*result.r2);
  document["examples"] = result.examples;
}

std::string Describe(const TestResult& result) {
  const std::string examples = Thousands(result.examples) + " examples";
  if (result.accuracy.has_value()) {
    return absl::StrCat("test accuracy ", AccuracyInWords(*result.accuracy, result.top5_accuracy),
                        "  (loss ", LossInWords(result.loss), PerplexityInWords(result.perplexity),
                        ", ", examples, ")");
  }
  return absl::StrCat("test loss ", LossInWords(result.loss),
                      RegressionInWords(result.mae, result.r2), "  (", examples, ")");
}

}  // namespace leeway
