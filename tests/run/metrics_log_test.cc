#include "run/metrics_log.h"

#include <filesystem>
#include <regex>
#include <set>

#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "absl/strings/str_split.h"
#include "common/files/files.h"
#include "run/history.h"
#include "run/metrics_file.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace leeway::metrics_log {
namespace {

using Catch::Matchers::Contains;

std::string Text(const std::string& path) { return ReadFile(path, 1 << 24).value(); }

// Returns the first group of every match of `pattern` in a file.
std::set<std::string> Found(const std::filesystem::path& file, const std::regex& pattern) {
  const std::string text = Text(file);
  std::set<std::string> found;
  for (std::sregex_iterator i(text.begin(), text.end(), pattern); i != std::sregex_iterator();
       ++i) {
    found.insert((*i)[1]);
  }
  return found;
}

}  // namespace

TEST_CASE("lines of steps keep their format byte for byte, read and written again") {
  const std::string text = Text(LEEWAY_SOURCE_DIR "/tests/run/steps.jsonl");
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  REQUIRE(lines.size() == 5);
  for (uint32_t rank = 0; rank < 5; ++rank) {
    CHECK(MetricsLine(StepRecord{rank, ParseHistory(lines[rank]).told}, 1.5) == lines[rank]);
  }
}

TEST_CASE("a line of metrics.jsonl is one JSON object") {
  const Event event{.name = "worker_lost", .rank = 1, .message = "bad \xff byte \n new line"};
  const std::string line = MetricsLine(event, 0);
  CHECK_THAT(line, !Contains("\n"));
  CHECK(nlohmann::json::parse(line)["rank"] == 1);
  CHECK_FALSE(nlohmann::json::parse(line).contains("clock"));
}

TEST_CASE("metrics_log.h lists every event of the coordinator, and no other") {
  const std::filesystem::path root = LEEWAY_SOURCE_DIR;
  std::set<std::string> emitted;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(root / "server/coordinator")) {
    if (entry.path().extension() != ".cc") continue;
    emitted.merge(Found(entry.path(), std::regex("\\.name = \"([a-z_]+)\"")));
  }
  CHECK(emitted.size() > 15);
  const auto listed = Found(root / "run/metrics_log.h",
                            std::regex("\n//   ([a-z]+_[a-z_]+|checkpoint|resizing|resized)  "));
  CHECK(listed == emitted);
}

TEST_CASE("A broken last line goes, however long it is") {
  for (const size_t length : {0u, 1u, 65'535u, 65'536u, 65'537u, 5'000'000u}) {
    const TempFolder folder;
    const std::string path = folder / "metrics.jsonl";
    REQUIRE(WriteFileAtomically(path, "{}\n" + std::string(length, 'x')).ok());
    auto log = MetricsFile::Open(path);
    REQUIRE(log.ok());
    REQUIRE((*log)->Append("{1}\n{2}\n").ok());
    CHECK(Text(path) == "{}\n{1}\n{2}\n");
  }
  const TempFolder folder;
  REQUIRE(WriteFileAtomically(folder / "m", "no line at all").ok());
  REQUIRE(MetricsFile::Open(folder / "m").ok());
  CHECK(Text(folder / "m").empty());
}

TEST_CASE("What is no regular file is refused, not waited on") {
  const TempFolder folder;
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  REQUIRE(MakeFolders(folder / "folder").ok());
  for (const char* name : {"pipe", "folder"}) CHECK_FALSE(MetricsFile::Open(folder / name).ok());
}

TEST_CASE("A log that was removed is made anew, without its folder there is none") {
  const TempFolder folder;
  const std::string run = folder / "run", path = run + "/metrics.jsonl";
  REQUIRE(MakeFolders(run).ok());
  auto log = MetricsFile::Open(path);
  REQUIRE(log.ok());
  REQUIRE((*log)->Append("{1}\n").ok());
  REQUIRE(RemoveTree(path).ok());
  REQUIRE((*log)->Append("{2}\n").ok());
  CHECK(Text(path) == "{2}\n");
  REQUIRE(RemoveTree(run).ok());
  CHECK(absl::IsNotFound((*log)->Append("{3}\n")));
  // This also holds if another process has made the folder again.
  REQUIRE(MakeFolders(run).ok());
  CHECK(absl::IsNotFound((*log)->Append("{4}\n")));
}

}  // namespace leeway::metrics_log
