// A damaged checkpoint is never silently replaced by another one.
#include "run/trained_model.h"

#include <filesystem>

#include <sys/stat.h>

#include "run/outcome.h"
#include "tests/catch.h"
#include "tests/server/checkpoint/sample.h"
#include "tests/temp_folder.h"

namespace leeway::trained_model {
namespace {

// The ways in which a checkpoint's file can be damaged.
enum class Damage { kFlipped, kCut, kEmpty, kPipe, kFolder };

void Do(Damage damage, const std::string& path) {
  std::string content = ReadFile(path, 1 << 20).value();
  switch (damage) {
    case Damage::kFlipped:
      content[content.size() / 2] = static_cast<char>(content[content.size() / 2] ^ 4);
      return Overwrite(path, content);
    case Damage::kCut:
      return Overwrite(path, content.substr(0, content.size() / 2));
    case Damage::kEmpty:
      return Overwrite(path, "");
    case Damage::kPipe:
      REQUIRE(RemoveTree(path).ok());
      REQUIRE(mkfifo(path.c_str(), 0600) == 0);
      return;
    case Damage::kFolder:
      REQUIRE(RemoveTree(path).ok());
      REQUIRE(MakeFolders(path).ok());
      return;
  }
}

}  // namespace

TEST_CASE("The newest checkpoint's model is the run's, with the clocks that are in it") {
  const TempFolder run;
  WriteSample(run.path(), {.clock = 5});
  WriteSample(run.path(), {.clock = 10});
  const auto model = LoadTrainedModel(run.path());
  REQUIRE(model.ok());
  CHECK(model->manifest.clock() == 10);
  CHECK(model->passed_over.empty());
  CHECK(model->clocks == std::vector<uint64_t>{10, 10, 10});
}

TEST_CASE("An older model than the newest is told of, and refused where a checkpoint is named") {
  for (const Damage damage :
       {Damage::kFlipped, Damage::kCut, Damage::kEmpty, Damage::kPipe, Damage::kFolder}) {
    for (const std::string file : {"shard-0-of-2.lwck", "shard-1-of-2.lwck", "MANIFEST.json"}) {
      INFO(static_cast<int>(damage) << " of " << file);
      const TempFolder run;
      WriteSample(run.path(), {.clock = 5});
      Do(damage, WriteSample(run.path(), {.clock = 10}) + "/" + file);
      const auto model = LoadTrainedModel(run.path());
      REQUIRE(model.ok());
      CHECK(model->manifest.clock() == 5);
      REQUIRE(model->passed_over.size() == 1);
      CHECK_THAT(model->passed_over[0], Catch::Contains("clock-000000010"));
      CHECK(LoadTrainedModel(run.path(), 5).ok());
      CHECK_FALSE(LoadTrainedModel(run.path(), 10).ok());

      RunSummary summary;
      REQUIRE(ExportNewest(run.path(), summary).ok());
      CHECK(summary.model.clock == 5);
      REQUIRE(summary.warnings.size() == 1);
      CHECK_THAT(summary.warnings[0], Catch::Contains("older checkpoint at clock 5"));
    }
  }
}

TEST_CASE("What is no run's folder is told from a run without a checkpoint") {
  const TempFolder folder;
  const auto told = [&](const std::string& path, std::optional<uint64_t> clock = std::nullopt) {
    const auto model = LoadTrainedModel(path, clock);
    CHECK(absl::IsNotFound(model.status()));
    return std::string(model.status().message());
  };
  const std::string nothing = "is not the folder of a run or of a checkpoint: it has no job.yaml";
  CHECK(told(folder / "none") == folder / "none" + ": the folder does not exist");
  CHECK_THAT(told(folder.path()), Catch::Contains(nothing));
  CHECK_THAT(told(folder.path(), 5), Catch::Contains(nothing));
  Overwrite(folder / "model.safetensors", "weights");
  CHECK_THAT(
      told(folder / "model.safetensors"),
      Catch::Contains("is a file; models are read from checkpoints: specify the run folder"));
  Overwrite(folder / "job.yaml", "");
  CHECK_THAT(told(folder.path()), Catch::Contains("holds no complete checkpoint"));
}

TEST_CASE("A checkpoint in the making is not damaged") {
  const TempFolder run;
  WriteSample(run.path(), {.clock = 5});
  REQUIRE(RemoveTree(WriteSample(run.path(), {.clock = 10}) + "/MANIFEST.json").ok());
  CHECK(LoadTrainedModel(run.path())->passed_over.empty());
}

TEST_CASE("A pipe in the model's place does not hold its export up") {
  const TempFolder run;
  WriteSample(run.path(), {.clock = 5});
  REQUIRE(mkfifo((run / "model.safetensors").c_str(), 0600) == 0);
  RunSummary summary;
  CHECK_THAT(std::string(ExportNewest(run.path(), summary).status().message()),
             Catch::Contains("not a regular file"));
}

TEST_CASE("A run that nobody watches has its model and its summary") {
  const TempFolder run;
  WriteSample(run.path(), {.clock = 5});
  v1::TrainingJob job = SampleManifest({}).job();
  job.mutable_workers()->set_count(3);
  job.mutable_stop()->set_clocks(5);
  REQUIRE(
      WriteOutcome({.job = job, .run_dir = run.path(), .state = "finished", .message = ""}).ok());
  CHECK(std::filesystem::exists(run / "model.safetensors"));
  const auto summary =
      ParseSummary(ReadFile(run / "summary.json", 1 << 20).value(), "summary.json");
  REQUIRE(summary.ok());
  CHECK(summary->state == "finished");
  // This run has no line of metrics.
  REQUIRE(summary->warnings.size() == 1);
  CHECK_THAT(summary->warnings[0], Catch::Contains("no steps of this run"));
  CHECK(summary->total.steps() == 15);
  CHECK(summary->by_rank.steps == std::vector<uint64_t>{5, 5, 5});
}

}  // namespace leeway::trained_model
