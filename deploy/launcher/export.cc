// leeway export: a checkpoint's weights as safetensors.
#include <iostream>
#include <memory>

#include "common/status.h"
#include "deploy/base/format.h"
#include "deploy/launcher/command_support.h"
#include "deploy/launcher/commands.h"
#include "deploy/launcher/trained_model.h"

namespace leeway {
namespace {

struct ExportOptions {
  std::string path;
  std::string output;
  std::optional<uint64_t> clock;
};

absl::Status Export(const ExportOptions& options) {
  ASSIGN_OR_RETURN(const TrainedModel model, LoadTrainedModel(options.path, options.clock));
  RETURN_IF_ERROR(ExportModel(model, options.output));
  std::cout << options.output << ": " << Thousands(model.manifest.schema().total())
            << " parameters in " << model.manifest.schema().tensors_size() << " tensors, from "
            << model.folder << "\n";
  return absl::OkStatus();
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
  command->callback([options, &exit_code] { exit_code = ShowResult(Export(*options)); });
}

}  // namespace leeway
