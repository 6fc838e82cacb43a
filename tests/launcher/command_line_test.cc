#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "common/exit_code.h"
#include "common/files/files.h"
#include "common/rpc/health_port.h"
#include "config/job.h"
#include "launcher/commands/command_support.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/running_job.h"
#include "launcher/plan/data_files.h"
#include "run/run_folder.h"
#include "server/checkpoint/manifest.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace leeway::command_line {
namespace {

int Run(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "leeway");
  return RunLeeway(static_cast<int>(arguments.size()), arguments.data());
}

constexpr char kQuickstart[] = LEEWAY_SOURCE_DIR "/config/jobs/quickstart.yaml";
constexpr char kData[] = LEEWAY_SOURCE_DIR "/data";

// Returns what a command that ends with `code` writes to standard error.
std::string Told(int code, const std::vector<const char*>& arguments) {
  std::ostringstream told;
  std::streambuf* const before = std::cerr.rdbuf(told.rdbuf());
  const int got = Run(arguments);
  std::cerr.rdbuf(before);
  CHECK(got == code);
  return told.str();
}

v1::TrainingJob Job() { return LoadJob(kQuickstart, {}).value(); }

}  // namespace

TEST_CASE("Wrong arguments are exit code 2, help and version 0") {
  CHECK(Run({}) == 2);
  CHECK(Run({"frobnicate"}) == 2);
  CHECK(Run({"train"}) == 2);
  CHECK(Run({"train", "--resume"}) == 2);
  CHECK(Run({"train", "job.yaml", "--nonsense"}) == 2);
  CHECK(Run({"export"}) == 2);
  CHECK(Run({"--help"}) == 0);
  CHECK(Run({"train", "--help"}) == 0);
  CHECK(Run({"--version"}) == 0);
  CHECK(Run({"version"}) == 0);
}

TEST_CASE("A mistyped command is named with the one that was meant, and one that is missing") {
  CHECK_THAT(Told(2, {"trian", "job.yaml"}),
             Catch::StartsWith("leeway: unknown command 'trian'; did you mean 'train'?\n"));
  CHECK_THAT(Told(2, {}),
             Catch::StartsWith("leeway: a command is missing; use one of train, plan"));
  CHECK_THAT(Told(2, {"doctor", "--peer", "foo"}),
             Catch::StartsWith("leeway: --peer: foo: not an address to connect to"));
}

TEST_CASE("Where no job is, the texts of gRPC are not what is said") {
  for (const char* nowhere : {"nowhere", "/etc/passwd", "127.0.0.1:0"}) {
    const std::string wanted = std::string("leeway: ") + nowhere + " is not a folder or an address";
    CHECK_THAT(Told(2, {"status", nowhere}), Catch::StartsWith(wanted));
    CHECK_THAT(Told(2, {"resize", nowhere, "--servers", "1"}), Catch::StartsWith(wanted));
  }
  CHECK(Told(1, {"status", "127.0.0.1:1"}) ==
        "leeway: asking the coordinator at 127.0.0.1:1: no process answers there (Connection "
        "refused)\n");
}

TEST_CASE("What a benchmark could not do or write is said before it measures") {
  const char* kTransport = "transport";
  CHECK(Run({"bench", kTransport, "--seconds", "nan"}) == 2);
  CHECK(Run({"bench", kTransport, "--seconds", "0"}) == 2);
  CHECK(Run({"bench", kTransport, "--codec", "auto"}) == 2);
  CHECK(Run({"bench", "exchange", "--codec", "int4"}) == 2);
  CHECK(Run({"bench", "update", "--json", "/nonexistent/x.json"}) == 1);
  CHECK(Run({"bench", "update", "--json", "/tmp"}) == 2);
  CHECK(Run({"doctor", "--seconds", "nan"}) == 2);
}

TEST_CASE("A wrong job file is exit code 2, one that is not there 1") {
  const TempFolder folder;
  REQUIRE(WriteFileAtomically(folder / "job.yaml", "kind: Nonsense\n").ok());
  CHECK(Run({"plan", (folder / "job.yaml").c_str()}) == 2);
  CHECK(Run({"plan", kQuickstart, "--set", "consistency.stalenes=1"}) == 2);
  CHECK(Run({"plan", (folder / "none.yaml").c_str()}) == 1);
}

TEST_CASE("A plan of the shipped job works, and without its data fails clearly") {
  const TempFolder folder;
  CHECK(Run({"plan", kQuickstart, "--data", kData}) == 0);
  CHECK(Run({"plan", kQuickstart, "--data", folder.path().c_str()}) == 1);
}

TEST_CASE("A plan of inputs that are far from 0 and 1 says so, and of normalised ones nothing") {
  const std::vector<const char*> job = {"plan", kQuickstart, "--data", kData};
  CHECK(Told(0, job) == "");
  std::vector<const char*> raw = job;
  raw.insert(raw.end(), {"--set", "data.normalize={mean: 0, std: 0.1}"});
  CHECK_THAT(Told(0, raw),
             Catch::StartsWith("leeway: channel 0 of the training data has a mean of") &&
                 Catch::Contains("give data.normalize"));
  // This model normalises its inputs itself.
  raw.insert(raw.end(),
             {"--set", "model.layers=[{flatten: {}}, {batch_norm: {}}, {dense: {units: 10}}]"});
  CHECK(Told(0, raw) == "");
}

TEST_CASE("A plan of more than this machine holds says so, and one that fits does not") {
  const std::vector<const char*> small = {"plan", kQuickstart, "--data", kData};
  CHECK(Told(0, small).empty());
  std::vector<const char*> large = small;
  large.insert(large.end(), {"--set", "workers.count=65000", "--set",
                             "model.layers=[{flatten: {}}, {dense: {units: 400000}}, {relu: {}}, "
                             "{dense: {units: 10}}]"});
  CHECK_THAT(Told(0, large),
             Catch::Contains("leeway: the job needs 17.3 TiB and this machine has "));
}

TEST_CASE("What the data show to be wrong is named by its place in the job and by its key") {
  const std::string at = std::string("leeway: ") + kQuickstart + ":";
  const auto plan = [](const char* set) {
    return Told(2, {"plan", kQuickstart, "--data", kData, "--set", set});
  };
  CHECK(plan("data.train.files=optdigits") ==
        std::string("leeway: --set data.train.files=optdigits: ") + kData +
            "/optdigits: not a regular file\n");
  CHECK(plan("data.train.label_column=100") ==
        std::string("leeway: --set data.train.label_column=100: ") + kData +
            "/optdigits/optdigits.tra:1: this line has 65 columns; column 100 does not "
            "exist (the first is 0, the last is -1)\n");
  CHECK_THAT(plan("model.layers.7.dense.units=9"),
             Catch::StartsWith(at + "30:29: data.train.files: ") &&
                 Catch::Contains("optdigits.tra:13: column 64: label 9: "
                                 "model.layers.7.dense.units is 9, which gives scores for the "
                                 "classes 0 to 8"));
  CHECK_THAT(plan("data.train.separator=;"), Catch::StartsWith("leeway: --set data.train.sep"));
  CHECK_THAT(plan("data.train.shape=[4, 4, 1]"),
             Catch::Contains("this line has 64 features, but 4x4x1 needs 16"));
  CHECK_THAT(plan("data.normalize.mean=[1, 2]"),
             Catch::StartsWith("leeway: --set data.normalize.mean=[1, 2]: 2 numbers"));
  CHECK_THAT(plan("data.test.label_column=2"), Catch::StartsWith(at));
  CHECK_THAT(plan("data.test.label_column=2"), Catch::Contains(": data.test.files: "));
}

TEST_CASE("Health is 0 where the service serves, and 1 where it does not or nobody is there") {
  std::string address;
  {
    const auto port = HealthPort::Start("127.0.0.1:0");
    REQUIRE(port.ok());
    address = (*port)->address();
    constexpr char kService[] = "leeway.v1.ParameterServer";
    CHECK(Run({"health", address.c_str()}) == 0);
    (*port)->Set(kService, false);
    CHECK(Run({"health", address.c_str(), "--service", kService}) == 1);
    (*port)->Set(kService, true);
    CHECK(Run({"health", address.c_str(), "--service", kService}) == 0);
  }
  CHECK(Run({"health", address.c_str(), "--timeout", "0.2"}) == 1);
  CHECK(Run({"health", "nowhere"}) == 2);
}

TEST_CASE("What a data file holds is printed, and files of two folders are refused") {
  const std::string train = std::string(kData) + "/optdigits/optdigits.tra";
  std::ostringstream printed;
  std::streambuf* const before = std::cout.rdbuf(printed.rdbuf());
  const int code = Run({"data", train.c_str()});
  std::cout.rdbuf(before);
  CHECK(code == 0);
  CHECK_THAT(printed.str(), Catch::Contains("3,823 examples of 64 features") &&
                                Catch::Contains("train: {type: csv, files: [\"optdigits.tra\"]}"));
  CHECK_THAT(Told(2, {"data", train.c_str(), kQuickstart}),
             Catch::Contains("is not in the folder of the first file"));
}

TEST_CASE("Folders without a run are errors of every command that wants one") {
  const TempFolder folder;
  for (const char* command : {"evaluate", "export", "status", "report"}) {
    CHECK(Run({command, folder.path().c_str()}) == 1);
  }
  CHECK(Run({"train", "--resume", "--run-dir", folder.path().c_str()}) == 1);
}

TEST_CASE("A run whose launcher was killed is told from one that answers") {
  const TempFolder folder;
  REQUIRE(WriteFileAtomically(folder / "coordinator", "127.0.0.1:1\n").ok());
  CHECK_THAT(Told(1, {"status", folder.path().c_str()}),
             Catch::Contains("train --resume --run-dir " + folder.path()));
}

TEST_CASE("Training without the job's data leaves no run folder behind") {
  const TempFolder folder;
  const std::string run = folder / "run";
  CHECK(Run({"train", kQuickstart, "--data", folder.path().c_str(), "--run-dir", run.c_str()}) ==
        1);
  CHECK_FALSE(std::filesystem::exists(run));
}

TEST_CASE("init writes a job that trains on the files, from any folder, and over no other file") {
  const TempFolder folder;
  const std::string job = folder / "first.yaml",
                    digits = absl::StrCat(kData, "/optdigits/optdigits.tra");
  const std::vector<const char*> init = {"init", digits.c_str(), "-o", job.c_str()};
  REQUIRE(Run(init) == 0);
  CHECK(Run({"plan", job.c_str()}) == 0);
  const v1::TrainingJob written = LoadJob(job, {}).value();
  CHECK(written.data().train().csv().files(0) == digits);
  CHECK(written.model().loss() == v1::LOSS_SOFTMAX_CROSS_ENTROPY);
  CHECK_FALSE(ReadsDataFolder(written));
  CHECK_THAT(Told(2, init), Catch::Contains("first.yaml already exists"));
  REQUIRE(WriteFileAtomically(folder / "people.csv", "age,bought\n31,yes\n45,no\n27,yes\n").ok());
  const std::string people = folder / "people.csv", other = folder / "people.yaml";
  REQUIRE(Run({"init", people.c_str(), "--label", "bought", "-o", other.c_str()}) == 0);
  CHECK(LoadJob(other, {})->data().train().csv().label() == "bought");
}

TEST_CASE("Every absent data file is named, with where to fetch it") {
  const TempFolder folder;
  CHECK(CheckDataFiles(Job(), kData).ok());
  const absl::Status status = CheckDataFiles(Job(), folder.path());
  CHECK(absl::IsNotFound(status));
  for (const char* file : {"optdigits/optdigits.tra", "optdigits/optdigits.tes"}) {
    CHECK(std::string(status.message()).find(file) != std::string::npos);
  }
}

TEST_CASE("The data folder is --data, else LEEWAY_DATA, else beside the job's folder") {
  const TempFolder folder;
  // ./data also counts, and the tests may be started in a folder that has it.
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  REQUIRE(MakeFolders(folder / "jobs").ok());
  REQUIRE(MakeFolders(folder / "data").ok());
  CHECK(*FindDataFolder(folder.path(), "", Job()) == folder.path());
  CHECK(absl::IsNotFound(FindDataFolder(folder / "none", "", Job()).status()));
  setenv("LEEWAY_DATA", (folder / "jobs").c_str(), 1);
  CHECK(*FindDataFolder("", "", Job()) == folder / "jobs");
  CHECK(*FindDataFolder(folder.path(), "", Job()) == folder.path());
  setenv("LEEWAY_DATA", (folder / "none").c_str(), 1);
  CHECK(absl::IsNotFound(FindDataFolder("", "", Job()).status()));
  unsetenv("LEEWAY_DATA");
  REQUIRE(std::filesystem::remove(folder / "data"));
  v1::TrainingJob generated = Job();
  generated.mutable_data()->clear_test();
  generated.mutable_data()->mutable_train()->mutable_generator()->set_examples(1);
  CHECK(*FindDataFolder("", "", generated) == folder.path());
  CHECK(absl::IsNotFound(FindDataFolder(folder / "none", "", generated).status()));
  generated.mutable_model()->set_initial("w.safetensors");
  CHECK(absl::IsNotFound(FindDataFolder("", "", generated).status()));
  REQUIRE(MakeFolders(folder / "data").ok());
  CHECK(*FindDataFolder("", folder / "jobs/job.yaml", Job()) == folder / "data");
  std::filesystem::current_path(before);
}

TEST_CASE("A run folder is taken by one launcher, and never over another run") {
  const TempFolder folder;
  const std::string path = folder / "run";
  {
    const auto run = RunFolder::Create(*PlaceOfRun(path));
    REQUIRE(run.ok());
    CHECK(std::filesystem::is_directory(path + "/logs"));
    REQUIRE(WriteFileAtomically(run->Lasting(kJobFile), "x").ok());
    CHECK(absl::IsAborted(RunFolder::Open(*PlaceOfRun(path)).status()));
    // What it holds is that launcher's.
    CHECK(absl::IsAborted(RunFolder::Create(*PlaceOfRun(path)).status()));
  }
  CHECK(RunFolder::Open(*PlaceOfRun(path)).ok());
  CHECK(absl::IsAlreadyExists(RunFolder::Create(*PlaceOfRun(path)).status()));
  CHECK(absl::IsAlreadyExists(RunFolder::Create(*PlaceOfRun(folder.path())).status()));
  CHECK(absl::IsNotFound(RunFolder::Open(*PlaceOfRun(folder / "none")).status()));
}

TEST_CASE("A run in an object store has a folder of this machine, too") {
  const std::string here = std::filesystem::current_path().string();
  const RunPlace by_default = *PlaceOfRun("s3://bucket/runs/first/");
  CHECK(by_default.location == "s3://bucket/runs/first");
  CHECK(by_default.here == here + "/runs/s3/bucket/runs/first");
  CHECK(by_default.in_store());
  CHECK(PlaceOfRun("s3://bucket")->here == here + "/runs/s3/bucket");
  CHECK(PlaceOfRun("s3://bucket/a", "logs")->here == here + "/logs");
  CHECK(*FolderHere("s3://bucket/runs/first") == by_default.here);
  CHECK_FALSE(PlaceOfRun("first")->in_store());
  CHECK(PlaceOfRun("first")->location == here + "/first");
  CHECK(absl::IsInvalidArgument(PlaceOfRun("first", "logs").status()));
  CHECK(absl::IsInvalidArgument(PlaceOfRun("s3://bucket/a/../b").status()));
  CHECK_THAT(std::string(FindCoordinator("s3://bucket/none").status().message()),
             Catch::Contains("HOST:PORT") && Catch::Contains("--local-dir"));
}

TEST_CASE("A run whose checkpoints are all damaged is not begun anew over them") {
  const TempFolder folder;
  const std::string job = ToYaml(Job());
  const std::string run = folder / "run";
  const std::string manifest = run + "/checkpoints/clock-000000010/" + std::string(kManifestName);
  REQUIRE(MakeFolders(run + "/checkpoints/clock-000000010").ok());
  REQUIRE(MakeFolders(run + "/logs").ok());
  REQUIRE(WriteFileAtomically(run + "/" + kJobFile, job).ok());
  REQUIRE(WriteFileAtomically(manifest, "damaged").ok());
  CHECK(Run({"train", "--resume", "--run-dir", run.c_str(), "--data", kData, "--set",
             "stop={clocks: 3}"}) == kExitPermanent);
  // The file is unchanged.
  CHECK(*ReadFile(manifest, 100) == "damaged");
  CHECK(*ReadFile(run + "/" + kJobFile, 1 << 20) == job);
  CHECK_FALSE(std::filesystem::exists(run + "/metrics.jsonl"));
}

}  // namespace leeway::command_line
