#include "launcher/finish/test_result.h"

#include <cmath>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/plugins/label_loss.h"
#include "common/status.h"
#include "common/text/format.h"
#include "run/core/figures.h"
#include "worker/data/dataset.h"
#include "worker/data/sources/test_data.h"
#include "worker/device/make_backend.h"
#include "worker/evaluate.h"
#include "worker/formats/model_file.h"
#include "worker/model/model.h"

namespace leeway {
namespace {

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

absl::StatusOr<EvaluatedModel> EvaluateOn(const v1::TrainingJob& job, const Test& test,
                                          std::span<const float> weights) {
  EvaluatedModel model;
  std::vector<float> labels;
  ASSIGN_OR_RETURN(model.result.metrics,
                   Evaluate(*test.model, *test.data, LabelLoss(job.model()), weights, &labels));
  if (test.model->graph().positions() > 1) {
    model.result.perplexity = std::exp(model.result.metrics.test_loss());
  }
  model.constant = ConstantOf(job.model().loss(), labels);
  return model;
}

}  // namespace

absl::StatusOr<std::optional<EvaluatedModel>> EvaluateModel(const v1::TrainingJob& job,
                                                            const std::string& data_dir,
                                                            std::span<const float> weights) {
  ASSIGN_OR_RETURN(const Test test, OpenTest(job, data_dir));
  if (test.data == nullptr) return std::nullopt;
  if (test.model->schema().total() != weights.size()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the job's model has ", test.model->schema().total(),
                     " parameters, but the checkpoint has ", weights.size(),
                     ": the test data have another shape than the training data"));
  }
  return EvaluateOn(job, test, weights);
}

absl::StatusOr<std::optional<EvaluatedModel>> EvaluateModelFile(const v1::TrainingJob& job,
                                                                const std::string& data_dir,
                                                                const std::string& path) {
  ASSIGN_OR_RETURN(const Test test, OpenTest(job, data_dir));
  if (test.data == nullptr) return std::nullopt;
  ASSIGN_OR_RETURN(const FloatBuffer weights, ReadModelFile(path, job.model(), *test.model));
  return EvaluateOn(job, test, weights.span());
}

std::optional<Tested> TestedBy(const EvaluatedModel& model) {
  if (!model.constant.has_value()) return std::nullopt;
  const v1::EvaluationMetrics& metrics = model.result.metrics;
  return Tested{{metrics.test_loss(), TestFigures().front().In(metrics)},
                *model.constant,
                metrics.examples()};
}

void AddResult(const TestResult& result, nlohmann::ordered_json& document) {
  AddTest(result, document);
  document["examples"] = result.metrics.examples();
}

std::string Describe(const TestResult& result, const std::string& examples) {
  const v1::EvaluationMetrics& metrics = result.metrics;
  const auto figure = [&](size_t i) { return TestFigures()[i].In(metrics); };
  const std::string loss = LossInWords(metrics.test_loss());
  if (metrics.has_test_accuracy()) {
    return absl::StrCat("test accuracy ", AccuracyInWords(metrics.test_accuracy(), figure(1)),
                        "  (loss ", loss, PerplexityInWords(result.perplexity),
                        examples.empty() ? "" : ", ", examples, ")");
  }
  return absl::StrCat("test loss ", loss, RegressionInWords(figure(2), figure(3)),
                      examples.empty() ? "" : absl::StrCat("  (", examples, ")"));
}

}  // namespace leeway
