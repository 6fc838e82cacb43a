#include "deploy/launcher/trained_model.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/protocol.h"
#include "common/safetensors.h"
#include "common/sha256.h"
#include "common/status.h"
#include "deploy/base/format.h"
#include "deploy/launcher/run_folder.h"
#include "server/checkpoint/checkpoint_dir.h"
#include "server/checkpoint/manifest.h"
#include "server/checkpoint/restore.h"
#include "worker/compute/make_backend.h"
#include "worker/data/dataset.h"
#include "worker/model/model.h"

namespace leeway {
namespace {

// Examples at once; bounds the memory of the activations.
constexpr size_t kEvaluationBatch = 256;

absl::StatusOr<std::string> CheckpointAt(const std::string& run_dir, uint64_t clock) {
  std::string clocks;
  for (const ReportInput::Checkpoint& checkpoint : ListCheckpoints(run_dir)) {
    if (checkpoint.clock == clock) return CheckpointFolder(run_dir, clock);
    absl::StrAppend(&clocks, clocks.empty() ? "" : ", ", checkpoint.clock);
  }
  return absl::NotFoundError(absl::StrCat(run_dir, " has no checkpoint at clock ", clock,
                                          clocks.empty() ? "" : "; there are ", clocks));
}

// The folder of the checkpoint that is meant.
absl::StatusOr<std::string> ResolveCheckpoint(const std::string& path,
                                              std::optional<uint64_t> clock) {
  std::error_code error;
  if (std::filesystem::exists(path + "/" + kManifestName, error)) return path;
  if (!std::filesystem::is_directory(path, error)) {
    return absl::NotFoundError(absl::StrCat(path, " is no folder of a run or a checkpoint"));
  }
  if (clock.has_value()) return CheckpointAt(path, *clock);
  ASSIGN_OR_RETURN(const CheckpointSearch search, FindNewestCheckpoint(path));
  if (!search.newest.has_value()) {
    std::string message = absl::StrCat(path, " holds no complete checkpoint");
    for (const std::string& warning : search.warnings) absl::StrAppend(&message, "\n  ", warning);
    return absl::NotFoundError(message);
  }
  return search.newest->folder;
}

}  // namespace

absl::StatusOr<TrainedModel> LoadTrainedModel(const std::string& path,
                                              std::optional<uint64_t> clock) {
  ASSIGN_OR_RETURN(const std::string folder, ResolveCheckpoint(path, clock));
  ASSIGN_OR_RETURN(const CheckpointReader reader, CheckpointReader::Open(folder));
  ASSIGN_OR_RETURN(FloatBuffer weights, reader.ReadAll("weights"));
  return TrainedModel{folder, reader.manifest(), std::move(weights)};
}

absl::Status ExportModel(const TrainedModel& model, const std::string& path) {
  const v1::CheckpointManifest& manifest = model.manifest;
  return WriteSafetensors(path, manifest.schema(), model.weights.span(),
                          {{"format", "leeway"},
                           {"leeway_version", kVersion},
                           {"job", manifest.job().metadata().name()},
                           {"clock", std::to_string(manifest.clock())},
                           {"weights_sha256", WeightsSha256(model.weights.span())}});
}

absl::StatusOr<std::optional<TestResult>> EvaluateModel(const v1::TrainingJob& job,
                                                        const std::string& data_dir,
                                                        std::span<const float> weights) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Dataset> data, OpenTestData(job, data_dir));
  if (data == nullptr) return std::nullopt;
  ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend, MakeBackend(job.workers()));
  ASSIGN_OR_RETURN(const std::unique_ptr<Model> model,
                   Model::Build(job.model(), data->shape(), data->classes(), *backend));
  if (model->schema().total() != weights.size()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the job's model has ", model->schema().total(), " parameters, the checkpoint ",
        weights.size(), ": the test data have another shape than the training data"));
  }
  double loss = 0;
  uint64_t correct = 0;
  Batch batch;
  for (size_t first = 0; first < data->size(); first += kEvaluationBatch) {
    data->CopyBatch(first, std::min(kEvaluationBatch, data->size() - first), batch);
    ASSIGN_OR_RETURN(const Model::Evaluation part, model->Evaluate(batch, weights));
    loss += part.loss_sum;
    correct += part.correct;
  }
  const auto examples = static_cast<double>(data->size());
  TestResult result{.loss = loss / examples, .accuracy = {}, .examples = data->size()};
  if (job.model().loss() != v1::LOSS_SQUARED)
    result.accuracy = static_cast<double>(correct) / examples;
  return result;
}

std::string Describe(const TestResult& result) {
  const std::string examples = Thousands(result.examples) + " examples";
  if (!result.accuracy.has_value()) {
    return absl::StrCat("test loss ", Fixed(result.loss, 4), "  (", examples, ")");
  }
  return absl::StrCat("test accuracy ", Percent(*result.accuracy), "  (loss ",
                      Fixed(result.loss, 4), ", ", examples, ")");
}

}  // namespace leeway
