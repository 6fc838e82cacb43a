#include "launcher/commands/test_result.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/base/format.h"
#include "common/status.h"
#include "worker/data/dataset.h"
#include "worker/data/sources/test_data.h"
#include "worker/device/make_backend.h"
#include "worker/model/model.h"

namespace leeway {
namespace {

// Examples at once; bounds the memory of the activations.
constexpr size_t kEvaluationBatch = 256;

}  // namespace

absl::StatusOr<std::optional<TestResult>> EvaluateModel(const v1::TrainingJob& job,
                                                        const std::string& data_dir,
                                                        std::span<const float> weights) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Dataset> data, OpenTestData(job, data_dir));
  if (data == nullptr) return std::nullopt;
  ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend, MakeCpuBackend(job.workers()));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Model> model,
      Model::Build(job.model(), data->shape(), data->classes(), *backend, data->labels_each()));
  if (model->schema().total() != weights.size()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the job's model has ", model->schema().total(), " parameters, the checkpoint ",
        weights.size(), ": the test data have another shape than the training data"));
  }
  double loss = 0;
  uint64_t correct = 0;
  uint64_t in_top5 = 0;
  std::vector<float> labels;
  RegressionError error;
  Batch batch;
  for (size_t first = 0; first < data->size(); first += kEvaluationBatch) {
    RETURN_IF_ERROR(
        data->CopyBatch(first, std::min(kEvaluationBatch, data->size() - first), batch));
    ASSIGN_OR_RETURN(const Model::Evaluation part, model->Evaluate(batch, weights));
    loss += part.loss_sum;
    correct += part.correct;
    in_top5 += part.in_top5;
    labels.insert(labels.end(), batch.labels.begin(), batch.labels.end());
    error.Add(part.error);
  }
  const auto examples = static_cast<double>(data->size());
  TestResult result{.loss = loss / examples,
                    .accuracy = {},
                    .top5_accuracy = {},
                    .perplexity = {},
                    .mae = error.mae(),
                    .r2 = error.r2(),
                    .examples = data->size(),
                    .constant = BestConstant(job.model().loss(), labels)};
  const auto share = [&](uint64_t count) {
    return static_cast<double>(count) / static_cast<double>(std::max<size_t>(labels.size(), 1));
  };
  if (job.model().loss() != v1::LOSS_SQUARED) result.accuracy = share(correct);
  if (model->graph().positions() > 1) result.perplexity = std::exp(result.loss);
  if (model->tells_top5()) result.top5_accuracy = share(in_top5);
  return result;
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
