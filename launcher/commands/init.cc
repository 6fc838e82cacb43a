// leeway init: writes a first job that trains on data files.
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "common/object_store/address.h"
#include "common/status.h"
#include "config/job.h"
#include "launcher/commands/command_support.h"
#include "launcher/commands/commands.h"
#include "launcher/inspect/inspect.h"

namespace leeway {
namespace {

struct InitFlags {
  std::vector<std::string> files;
  std::string output = "job.yaml";
  std::string label;
};

constexpr char kRest[] =
    "update: {type: adam, learning_rate: 0.001}   # how the servers apply gradients\n"
    "workers: {count: 2}                          # each trains on batches of its own\n"
    "stop: {epochs: 10}                           # passes over the training data\n"
    "evaluation: {every: {epochs: 1}}             # on what is held out\n";

std::string JobText(const Inspection& inspection, const std::string& path) {
  return absl::StrCat(
      "# leeway train ", path, "\n# leeway plan ", path,
      "    what would run, with every default written out\n# Every key: docs/guide.md "
      "and proto/leeway/v1/job.proto.\n",
      inspection.model, inspection.data, kRest);
}

// Returns absolute paths, so that the job finds the files wherever it is started on this machine.
std::vector<std::string> FullNames(const std::vector<std::string>& files) {
  std::vector<std::string> names;
  std::error_code error;
  for (const std::string& file : files) {
    if (IsObjectLocation(file)) {
      names.push_back(file);
      continue;
    }
    names.push_back(std::filesystem::absolute(file, error).lexically_normal().string());
  }
  return names;
}

absl::Status Init(const InitFlags& flags) {
  std::error_code error;
  if (std::filesystem::exists(flags.output, error)) {
    return absl::AlreadyExistsError(absl::StrCat(
        flags.output, " already exists: remove the file, or name another file with -o"));
  }
  ASSIGN_OR_RETURN(const Inspection inspection,
                   InspectData("", FullNames(flags.files), flags.label));
  const std::string text = JobText(inspection, flags.output);
  RETURN_IF_ERROR(ParseJob(text, flags.output, {}).status());
  RETURN_IF_ERROR(WriteFileAtomically(flags.output, text));
  std::cout << inspection.summary << "Wrote " << flags.output << "; train it with: leeway train "
            << flags.output << "\n";
  return absl::OkStatus();
}

}  // namespace

void AddInitCommand(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<InitFlags>();
  CLI::App* command = app.add_subcommand("init", "Write a first job that trains on files of data");
  command->add_option("FILE", flags->files, "Files of one source, or a folder of pictures")
      ->required();
  command->add_option("-o,--output", flags->output, "The job file to write")->capture_default_str();
  command->add_option("--label", flags->label,
                      "The column of a table's labels: its name, or its number from 0");
  command->callback([flags, &exit_code] { exit_code = ShowResult(Init(*flags)); });
}

}  // namespace leeway
