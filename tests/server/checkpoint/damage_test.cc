// Whatever happens to a checkpoint's files, a resumed job gets a state that was saved, and no
// other.
#include <filesystem>

#include <sys/mount.h>

#include "server/checkpoint/restore.h"
#include "tests/server/checkpoint/sample.h"
#include "tests/skip.h"
#include "tests/temp_folder.h"

namespace leeway::damage {
namespace {

// Resumes as a server does, and checks all values. Returns the clock at which the job resumes; 0 if
// it has no checkpoint.
uint64_t Resume(const std::string& run_dir, const Sample& sample) {
  const auto search = FindNewestCheckpoint(run_dir);
  REQUIRE(search.ok());
  if (!search->newest.has_value()) return 0;
  const auto reader = CheckpointReader::Open(search->newest->folder, CheckpointVerify::kHeaders);
  REQUIRE(reader.ok());
  const uint64_t clock = search->newest->manifest.clock();
  for (const std::string& key : sample.keys) {
    const auto values = reader->ReadAll(key);
    REQUIRE(values.ok());
    const std::vector<float> expected = SampleValues(key, {0, sample.total}, clock);
    REQUIRE(std::equal(expected.begin(), expected.end(), values->data()));
  }
  REQUIRE(reader->Progress({0, sample.total})->clocks[0] == clock);
  return clock;
}

TEST_CASE(
    "any flipped byte, truncation or missing file of the newest checkpoint leads to the older "
    "one") {
  TempFolder run;
  Sample sample{.clock = 1, .total = 12, .servers = 2, .block_elements = 8, .ranks = 1};
  WriteSample(run.path(), sample);
  sample.clock = 2;
  const std::string folder = WriteSample(run.path(), sample);
  REQUIRE(Resume(run.path(), sample) == 2);
  size_t mutations = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string path = entry.path().string(), good = *ReadFile(path, 1 << 20);
    for (size_t i = 0; i < good.size(); ++i, mutations += 2) {
      CAPTURE(path, i);
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << i % 8));
      Overwrite(path, bad);
      REQUIRE(Resume(run.path(), sample) == 1);
      Overwrite(path, good.substr(0, i));
      REQUIRE(Resume(run.path(), sample) == 1);
    }
    REQUIRE(RemoveTree(path).ok());
    REQUIRE(Resume(run.path(), sample) == 1);
    Overwrite(path, good);
    REQUIRE(Resume(run.path(), sample) == 2);
  }
  REQUIRE(mutations > 1000);
}

TEST_CASE("a lone damaged checkpoint is refused") {
  TempFolder run;
  const Sample sample;
  const std::string folder = WriteSample(run.path(), sample);
  std::string bad = *ReadFile(folder + "/shard-0-of-2.lwck", 1 << 20);
  bad.back() ^= 1;
  Overwrite(folder + "/shard-0-of-2.lwck", bad);
  REQUIRE(Resume(run.path(), sample) == 0);
  REQUIRE(absl::IsDataLoss(CheckpointReader::Open(folder).status()));
}

TEST_CASE("values damaged after the checkpoint was verified are found when they are read") {
  TempFolder run;
  const Sample sample{.servers = 1};
  const std::string folder = WriteSample(run.path(), sample);
  const auto reader = CheckpointReader::Open(folder);
  REQUIRE(reader.ok());
  std::string bad = *ReadFile(folder + "/shard-0-of-1.lwck", 1 << 20);
  bad[bad.size() - 20] ^= 1;
  Overwrite(folder + "/shard-0-of-1.lwck", bad);
  REQUIRE(absl::IsDataLoss(reader->ReadAll("momentum").status()));
  REQUIRE(reader->ReadAll(kWeightsKey).ok());
}

TEST_CASE("a full disk fails the new checkpoint and leaves the older one good") {
  TempFolder run;
  if (mount("none", run.path().c_str(), "tmpfs", 0, "size=256k") != 0)
    SKIP("mounting a small tmpfs needs root");
  const Sample small{.clock = 1, .total = 1000};
  WriteSample(run.path(), small);
  const Sample large{.clock = 2, .total = 100'000, .block_elements = 10'000};
  const std::string folder = CheckpointFolder(run.path(), 2);
  const absl::Status made = MakeFolders(folder);
  const absl::Status saved = WriteSampleShard(folder, large, 0).status();
  const bool left = std::filesystem::is_empty(folder);
  const uint64_t resumed = Resume(run.path(), small);
  umount(run.path().c_str());
  REQUIRE(made.ok());
  REQUIRE(absl::IsResourceExhausted(saved));
  REQUIRE_THAT(std::string(saved.message()), Catch::Matchers::Contains("No space left on device") &&
                                                 Catch::Matchers::Contains(folder));
  REQUIRE(left);
  REQUIRE(resumed == 1);
}

}  // namespace
}  // namespace leeway::damage
