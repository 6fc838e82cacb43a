// leeway evaluate: a checkpoint on the job's test data.
#include <iostream>
#include <memory>

#include "bench/base/format.h"
#include "common/status.h"
#include "launcher/commands/command_support.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/model_json.h"
#include "launcher/commands/test_result.h"
#include "server/outcome/trained_model.h"

namespace leeway {
namespace {

struct EvaluateOptions {
  std::string path;
  std::string data;
  std::optional<uint64_t> clock;
  std::string json;
};

absl::Status Evaluate(const EvaluateOptions& options) {
  RETURN_IF_ERROR(CheckWritable(options.json));
  ASSIGN_OR_RETURN(const TrainedModel model, LoadTrainedModel(options.path, options.clock));
  WarnOfOlderModel(model);
  ASSIGN_OR_RETURN(const std::string data, FindDataFolder(options.data, ""));
  ASSIGN_OR_RETURN(const std::optional<TestResult> result,
                   EvaluateModel(model.manifest.job(), data, model.weights.span()));
  if (!result.has_value()) {
    return absl::FailedPreconditionError("the job names no test data (data.test or data.holdout)");
  }
  std::cout << model.folder << " (clock " << Thousands(model.manifest.clock()) << ")\n"
            << Describe(*result) << "\n";
  auto document = ModelJson(model);
  AddResult(*result, document);
  return WriteJson(options.json, document);
}

}  // namespace

void AddEvaluateCommand(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<EvaluateOptions>();
  CLI::App* command =
      app.add_subcommand("evaluate", "Evaluate a run's model, or a checkpoint's, on the test data");
  command->add_option("PATH", options->path, "A run folder or a checkpoint's folder")->required();
  AddDataOption(*command, options->data);
  command
      ->add_option("--checkpoint", options->clock,
                   "Of a run: the checkpoint at this clock, not the newest")
      ->type_name("CLOCK");
  AddJsonOption(*command, options->json);
  command->callback([options, &exit_code] { exit_code = ShowResult(Evaluate(*options)); });
}

}  // namespace leeway
