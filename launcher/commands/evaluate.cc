// leeway evaluate: evaluates a checkpoint or a model file on the job's test data.
#include <filesystem>
#include <iostream>
#include <memory>

#include "common/object_store/address.h"
#include "common/status.h"
#include "common/text/format.h"
#include "config/external.h"
#include "launcher/commands/command_support.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/model_json.h"
#include "launcher/commands/running_job.h"
#include "launcher/finish/test_result.h"
#include "launcher/plan/data_files.h"
#include "run/run_folder.h"
#include "run/trained_model.h"

namespace leeway {
namespace {

struct EvaluateOptions {
  std::string path;
  JobFlags job;
  // The file of --model. If empty, the run's own model is evaluated.
  std::string model;
  std::optional<uint64_t> clock;
  bool average = false;
  std::string json;
};

absl::StatusOr<TestResult> TestOf(absl::StatusOr<std::optional<EvaluatedModel>> model) {
  RETURN_IF_ERROR(model.status());
  if (model->has_value()) return (*model)->result;
  return absl::FailedPreconditionError("the job names no test data (data.test or data.holdout)");
}

std::string InWords(const TestResult& result) {
  return Describe(result, Thousands(result.metrics.examples()) + " examples");
}

absl::Status EvaluateRun(const EvaluateOptions& options) {
  std::error_code error;
  if (!IsObjectLocation(options.path) && !std::filesystem::exists(options.path, error)) {
    return absl::NotFoundError(
        absl::StrCat(options.path, ": there is no such folder", RunsHere(options.path)));
  }
  ASSIGN_OR_RETURN(const TrainedModel model, LoadTrainedModel(options.path, options.clock));
  WarnOfOlderModel(model);
  const v1::TrainingJob& job = model.manifest.job();
  RETURN_IF_ERROR(CheckHasLayers(job, "this command"));
  ASSIGN_OR_RETURN(const std::string data, FindDataFolder(options.job.data, "", job));
  std::span<const float> weights = model.Evaluated();
  if (options.average) {
    ASSIGN_OR_RETURN(weights, model.Of(v1::EVALUATED_WEIGHTS_AVERAGE));
  }
  ASSIGN_OR_RETURN(const TestResult result, TestOf(EvaluateModel(job, data, weights)));
  std::cout << model.folder << " (clock " << Thousands(model.manifest.clock()) << ")\n"
            << InWords(result) << "\n";
  auto document = ModelJson(model);
  AddResult(result, document);
  return WriteJson(options.json, document);
}

// Evaluates the weights in a file, with the model and the test data of a job or a run.
absl::Status EvaluateFile(EvaluateOptions options) {
  if (options.clock.has_value()) {
    return absl::InvalidArgumentError(
        "--checkpoint and --model each name weights: give only one of them");
  }
  if (options.average) {
    return absl::InvalidArgumentError(
        "--average and --model each name weights: give only one of them");
  }
  std::error_code error;
  const bool run =
      IsObjectLocation(options.path) || std::filesystem::is_directory(options.path, error);
  options.job.job_file = run ? options.path + "/" + kJobFile : options.path;
  ASSIGN_OR_RETURN(const PlacedJob placed, LoadJobWithOptions(options.job));
  const v1::TrainingJob& job = placed.job;
  RETURN_IF_ERROR(placed.places.Place(CheckHasLayers(job, "this command")));
  ASSIGN_OR_RETURN(const std::string data,
                   FindDataFolder(options.job.data, options.job.job_file, job));
  auto evaluated = TestOf(EvaluateModelFile(job, data, options.model));
  if (!evaluated.ok()) return placed.places.Place(evaluated.status());
  std::cout << options.model << "\n" << InWords(*evaluated) << "\n";
  nlohmann::ordered_json document = {{"model", options.model}};
  AddResult(*evaluated, document);
  return WriteJson(options.json, document);
}

absl::Status Evaluate(const EvaluateOptions& options) {
  RETURN_IF_ERROR(CheckWritable(options.json));
  if (!options.model.empty()) return EvaluateFile(options);
  if (!options.job.sets.empty()) {
    return absl::InvalidArgumentError(
        "--set changes a job file, which only --model reads: also give --model");
  }
  return EvaluateRun(options);
}

}  // namespace

void AddEvaluateCommand(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<EvaluateOptions>();
  CLI::App* command = app.add_subcommand(
      "evaluate", "Evaluate the model of a run, a checkpoint or a file on the test data");
  command
      ->add_option("PATH", options->path,
                   "A run folder or a checkpoint's folder, also s3://BUCKET/PREFIX; with --model, "
                   "a job file or a run folder")
      ->required();
  command
      ->add_option("--model", options->model,
                   "The file of the weights: safetensors with Leeway's names or PyTorch's")
      ->type_name("FILE");
  AddSetOption(*command, options->job);
  AddDataOption(*command, options->job.data);
  command
      ->add_option("--checkpoint", options->clock,
                   "Use the run's checkpoint at this clock, not the newest")
      ->type_name("CLOCK");
  command->add_flag("--average", options->average,
                    "Use the moving average of the weights (update.average); default: the weights "
                    "that the job's evaluation.weights names");
  AddJsonOption(*command, options->json);
  command->callback([options, &exit_code] { exit_code = ShowResult(Evaluate(*options)); });
}

}  // namespace leeway
