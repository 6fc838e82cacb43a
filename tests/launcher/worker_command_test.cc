#include "launcher/start/worker_command.h"

#include <filesystem>
#include <map>

#include "common/files/files.h"
#include "config/job.h"
#include "launcher/supervision/find_program.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace leeway::worker_command {
namespace {

using Words = std::vector<std::string>;

SplitCommandLine Split(std::vector<const char*> arguments) {
  return SplitAtCommand(static_cast<int>(arguments.size()), arguments.data());
}

Words Own(const SplitCommandLine& line) { return {line.own.begin(), line.own.end()}; }

EnvironmentLookup With(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

v1::TrainingJob JobOf(const std::string& model_and_data) {
  return ParseJob("apiVersion: leeway/v1\nkind: TrainingJob\nmetadata: {name: x}\n" +
                      model_and_data +
                      "exchange: {type: gradient}\nconsistency: {mode: sync}\n"
                      "update: {type: sgd, learning_rate: 1}\nstop: {epochs: 1}\n"
                      "workers: {threads: 3}\n",
                  "job.yaml", {})
      .value();
}

v1::TrainingJob External() {
  return JobOf("model: {type: external}\ndata: {type: external, batch_size: 1, examples: 1}\n");
}

void WriteProgram(const std::string& path) {
  REQUIRE(WriteFileAtomically(path, "#!/bin/sh\n").ok());
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
}

TEST_CASE("the command lines of train and kubernetes are cut at the first --, and no other") {
  const SplitCommandLine line = Split({"leeway", "train", "job.yaml", "--resume", "--", "python3",
                                       "x.py", "--lr", "1", "--", "--help"});
  CHECK(Own(line) == Words{"leeway", "train", "job.yaml", "--resume"});
  CHECK(line.command == Words{"python3", "x.py", "--lr", "1", "--", "--help"});
  CHECK(Split({"leeway", "train", "job.yaml"}).command.empty());
  CHECK(Own(Split({"leeway", "train", "--"})) == Words{"leeway", "train"});
  CHECK(Split({"leeway", "train", "--"}).command.empty());
  CHECK(Split({"leeway", "kubernetes", "job.yaml", "--", "python3"}).command == Words{"python3"});
  CHECK(Own(Split({"leeway", "status", "--", "run"})) == Words{"leeway", "status", "--", "run"});
  CHECK(Own(Split({"leeway"})) == Words{"leeway"});
}

TEST_CASE("an external job has a command, and no other one has") {
  const v1::TrainingJob other = JobOf(
      "model: {layers: [{dense: {units: 1}}], loss: squared}\n"
      "data: {train: {type: csv, files: x}, batch_size: 1}\n");
  CHECK(CheckCommand(External(), {"python3"}).ok());
  CHECK(CheckCommand(other, {}).ok());
  CHECK_THAT(std::string(CheckCommand(External(), {}).message()),
             Catch::StartsWith("the job's model is external: name the program that trains it"));
  CHECK_THAT(std::string(CheckCommand(other, {"python3"}).message()),
             Catch::StartsWith("-- python3: the job's model is Leeway's own"));
  CHECK(absl::IsInvalidArgument(CheckCommand(other, {"python3"})));
}

TEST_CASE("a program is found as a shell finds it") {
  const TempFolder folder;
  REQUIRE(MakeFolders(folder / "a/trainer").ok());
  REQUIRE(MakeFolders(folder / "b").ok());
  WriteProgram(folder / "b/trainer");
  REQUIRE(WriteFileAtomically(folder / "a/text", "").ok());
  const auto path = With({{"PATH", folder / "a:" + folder / "b"}});
  CHECK(*FindProgram("trainer", path) == folder / "b/trainer");
  CHECK(*FindProgram(folder / "b/trainer", With({})) == folder / "b/trainer");
  for (const std::string& name : {std::string("text"), std::string("gone"), std::string(),
                                  folder / "a/text", folder / "a/trainer", folder / "gone"}) {
    CAPTURE(name);
    const absl::Status status = FindProgram(name, path).status();
    CHECK(absl::IsNotFound(status));
    CHECK_THAT(std::string(status.message()), Catch::StartsWith(name + ": there is no"));
  }
}

TEST_CASE("a program finds the job's folder and threads in its environment") {
  const Environment all = CommandEnvironment(External(), "/runs/x", "/data", With({}));
  CHECK(all == Environment{{"LEEWAY_RUN_DIR", "/runs/x"},
                           {"LEEWAY_DATA", "/data"},
                           {"OMP_NUM_THREADS", "3"},
                           {"PYTHONUNBUFFERED", "1"},
                           {"MALLOC_MMAP_THRESHOLD_", "33554432"},
                           {"MALLOC_TRIM_THRESHOLD_", "67108864"},
                           {"MALLOC_TOP_PAD_", "67108864"}});
  // A setting in the user's environment precedes the job's.
  CHECK(CommandEnvironment(External(), "/runs/x", "",
                           With({{"OMP_NUM_THREADS", "8"},
                                 {"PYTHONUNBUFFERED", "x"},
                                 {"MALLOC_MMAP_THRESHOLD_", "1"},
                                 {"MALLOC_TRIM_THRESHOLD_", "1"},
                                 {"MALLOC_TOP_PAD_", "1"}})) ==
        Environment{{"LEEWAY_RUN_DIR", "/runs/x"}});
  CHECK(CommandEnvironment(External(), "x", "", With({}))[0].second ==
        std::filesystem::absolute("x").string());
}

}  // namespace
}  // namespace leeway::worker_command
