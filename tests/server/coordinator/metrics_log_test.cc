#include <sys/stat.h>

#include "common/files/files.h"
#include "server/coordinator/metrics_file.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace leeway::metrics_log {
namespace {

std::string Text(const std::string& path) { return ReadFile(path, 1 << 24).value(); }

}  // namespace

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
