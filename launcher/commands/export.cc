// leeway export: a checkpoint's weights as safetensors.
#include <iostream>
#include <memory>

#include "bench/base/format.h"
#include "common/counted.h"
#include "common/status.h"
#include "launcher/commands/command_support.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/model_json.h"
#include "server/outcome/trained_model.h"

namespace leeway {
namespace {

struct ExportOptions {
  std::string path;
  std::string output;
  std::optional<uint64_t> clock;
  std::string json;
};

absl::Status Export(const ExportOptions& options) {
  RETURN_IF_ERROR(CheckWritable(options.json));
  ASSIGN_OR_RETURN(const TrainedModel model, LoadTrainedModel(options.path, options.clock));
  WarnOfOlderModel(model);
  RETURN_IF_ERROR(ExportModel(model, options.output, WriteTo::kAnything));
  std::cout << options.output << ": " << Thousands(model.manifest.schema().total())
            << " parameters in " << Counted(model.manifest.schema().tensors_size(), "tensor")
            << ", from " << model.folder << "\n";
  auto document = ModelJson(model);
  document["output"] = options.output;
  return WriteJson(options.json, document);
}

}  // namespace

void AddExportCommand(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* command =
      app.add_subcommand("export", "Write a run's model, or a checkpoint's, as safetensors");
  command->add_option("PATH", options->path, "A run folder or a checkpoint's folder")->required();
  command->add_option("-o,--output", options->output, "The file to write")
      ->type_name("FILE")
      ->default_val("model.safetensors");
  command
      ->add_option("--checkpoint", options->clock,
                   "Of a run: the checkpoint at this clock, not the newest")
      ->type_name("CLOCK");
  AddJsonOption(*command, options->json);
  command->callback([options, &exit_code] { exit_code = ShowResult(Export(*options)); });
}

}  // namespace leeway
