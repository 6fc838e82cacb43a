#include "launcher/start/worker_command.h"

#include <filesystem>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/memory.h"
#include "config/external.h"

namespace leeway {

SplitCommandLine SplitAtCommand(int argc, const char* const* argv) {
  SplitCommandLine split;
  const std::string_view name = argc > 1 ? argv[1] : "";
  const bool starts = name == "train" || name == "kubernetes";
  int at = 0;
  for (; at < argc; ++at) {
    if (starts && std::string_view(argv[at]) == "--") break;
    split.own.push_back(argv[at]);
  }
  for (++at; at < argc; ++at) split.command.emplace_back(argv[at]);
  return split;
}

absl::Status CheckCommand(const v1::TrainingJob& job, const std::vector<std::string>& command,
                          absl::string_view line) {
  if (!IsExternal(job)) {
    if (command.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "-- ", command.front(),
        ": the job's model is Leeway's own, which leeway-worker trains: leave the command out, or "
        "set model.type and data.type to external"));
  }
  if (!command.empty() && !command.front().empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the job's model is external: name the program that trains it, as in ", line,
      " -- python3 train.py. To start the workers by hand, start leeway-server, and start the "
      "program once for each rank, with LEEWAY_COORDINATOR and LEEWAY_RANK (docs/operations.md)"));
}

Environment ProgramEnvironment(const v1::TrainingJob& job, const EnvironmentLookup& look_up) {
  Environment environment;
  const auto unless_said = [&](const char* name, std::string value) {
    if (!look_up(name)) environment.emplace_back(name, std::move(value));
  };
  unless_said("OMP_NUM_THREADS", std::to_string(job.workers().threads()));
  // With this setting Python's output appears in the log at once, not when a buffer is full.
  unless_said("PYTHONUNBUFFERED", "1");
  // These are the settings that TameMalloc makes in Leeway's own workers.
  unless_said("MALLOC_MMAP_THRESHOLD_", std::to_string(kMmapThreshold));
  unless_said("MALLOC_TRIM_THRESHOLD_", std::to_string(kKeptBytes));
  unless_said("MALLOC_TOP_PAD_", std::to_string(kKeptBytes));
  return environment;
}

Environment CommandEnvironment(const v1::TrainingJob& job, const std::string& run_dir,
                               const std::string& data_dir, const EnvironmentLookup& look_up) {
  std::error_code error;
  Environment environment = {
      {"LEEWAY_RUN_DIR", std::filesystem::absolute(run_dir, error).string()}};
  if (!data_dir.empty()) environment.emplace_back("LEEWAY_DATA", data_dir);
  for (auto& variable : ProgramEnvironment(job, look_up)) {
    environment.push_back(std::move(variable));
  }
  return environment;
}

}  // namespace leeway
