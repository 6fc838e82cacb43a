// leeway export: writes a checkpoint's weights as safetensors, or the model in the format of other
// programs.
#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/counted.h"
#include "common/status.h"
#include "common/text/format.h"
#include "config/external.h"
#include "launcher/commands/command_support.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/model_json.h"
#include "launcher/plan/run_model.h"
#include "run/trained_model.h"
#include "worker/formats/model_file.h"
#include "worker/onnx/onnx_model.h"

namespace leeway {
namespace {

constexpr char kSafetensors[] = "safetensors";
constexpr char kPytorch[] = "pytorch";
constexpr char kOnnx[] = "onnx";

struct ExportOptions {
  std::string path;
  // The file to write. If empty, the format's usual file name is used.
  std::string output;
  std::string format = kSafetensors;
  std::optional<uint64_t> clock;
  std::vector<uint32_t> shape;
  std::string data;
  bool average = false;
  std::string json;
};

std::string OutputOf(const ExportOptions& options) {
  if (!options.output.empty()) return options.output;
  return options.format == kOnnx ? "model.onnx" : "model.safetensors";
}

// Writes the model in the format of PyTorch or ONNX, which depends on the shape of an example.
absl::Status ExportConverted(const ExportOptions& options, const TrainedModel& trained,
                             std::span<const float> weights, const std::string& output) {
  const v1::TrainingJob& job = trained.manifest.job();
  RETURN_IF_ERROR(
      Annotate(CheckHasLayers(job, "this command"),
               absl::StrCat("--format ", options.format, " needs the layers of the model")));
  ASSIGN_OR_RETURN(const ImageShape shape, ExampleShape(job, options.shape, options.data));
  ASSIGN_OR_RETURN(const BuiltModel built, BuildModel(job, shape, trained.weights.size()));
  if (options.format == kPytorch) {
    return WriteTorchFile(output, job.model(), *built.model, weights,
                          ExportMetadata(trained, weights, "pt"), WriteTo::kAnything);
  }
  ASSIGN_OR_RETURN(
      const onnx::ModelProto document,
      MakeOnnxModel(job.model(), *built.model, weights, ExportMetadata(trained, weights, "onnx")));
  return WriteFileAtomically(output, document.SerializeAsString(), WriteTo::kAnything);
}

absl::Status Export(const ExportOptions& options) {
  RETURN_IF_ERROR(CheckWritable(options.json));
  const std::string output = OutputOf(options);
  ASSIGN_OR_RETURN(const TrainedModel model, LoadTrainedModel(options.path, options.clock));
  WarnOfOlderModel(model);
  ASSIGN_OR_RETURN(const auto weights, model.Of(options.average ? v1::EVALUATED_WEIGHTS_AVERAGE
                                                                : v1::EVALUATED_WEIGHTS_CURRENT));
  if (options.format == kSafetensors) {
    RETURN_IF_ERROR(ExportModel(model, weights, output, WriteTo::kAnything));
  } else {
    RETURN_IF_ERROR(ExportConverted(options, model, weights, output));
  }
  std::cout << output << ": " << Thousands(model.manifest.schema().total()) << " parameters in "
            << Counted(model.manifest.schema().tensors_size(), "tensor") << ", from "
            << model.folder << "\n";
  auto document = ModelJson(model);
  document["output"] = output;
  return WriteJson(options.json, document);
}

}  // namespace

void AddExportCommand(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* command =
      app.add_subcommand("export", "Write a run's model, or a checkpoint's, for other programs");
  command->add_option("PATH", options->path, "A run folder or a checkpoint's folder")->required();
  command
      ->add_option("-o,--output", options->output,
                   "The file to write; default model.safetensors or model.onnx")
      ->type_name("FILE");
  command
      ->add_option("--format", options->format,
                   "safetensors: tensors as Leeway has them, which is the default; pytorch: "
                   "safetensors with the names and layouts of PyTorch; onnx")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({kSafetensors, kPytorch, kOnnx}).description(""));
  command
      ->add_option("--shape", options->shape,
                   "For pytorch and onnx, the shape of an example, such as --shape 32,32,3; "
                   "default: the shape of the job's data")
      ->type_name("H,W,C")
      ->delimiter(',')
      ->allow_extra_args(false);
  AddDataOption(*command, options->data);
  command
      ->add_option("--checkpoint", options->clock,
                   "Use the run's checkpoint at this clock, not the newest")
      ->type_name("CLOCK");
  command->add_flag("--average", options->average,
                    "Use the moving average of the weights (update.average)");
  AddJsonOption(*command, options->json);
  command->callback([options, &exit_code] { exit_code = ShowResult(Export(*options)); });
}

}  // namespace leeway
