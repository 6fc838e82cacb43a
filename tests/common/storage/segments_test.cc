#include "common/storage/segments.h"

#include <string>

#include "common/files/files.h"
#include "tests/catch.h"
#include "tests/common/storage/memory_storage.h"
#include "tests/temp_folder.h"

namespace leeway::segments {
namespace {

using std::chrono::seconds;

constexpr char kFolder[] = "segments://run/metrics";

struct Rig {
  Rig() { MountStorage("segments://", storage); }
  std::unique_ptr<SegmentWriter> Open(uint64_t segment_bytes = 1000) {
    auto writer = SegmentWriter::Open(kFolder, {.extension = "jsonl",
                                                .every = seconds(10),
                                                .segment_bytes = segment_bytes,
                                                .kept_bytes_max = 100,
                                                .now = [this] { return now; }});
    REQUIRE(writer.ok());
    return *std::move(writer);
  }
  std::string Joined() const {
    const TempFolder folder;
    REQUIRE(JoinSegments(kFolder, folder / "joined").ok());
    return *ReadFile(folder / "joined", 1 << 20);
  }
  std::shared_ptr<MemoryStorage> storage = std::make_shared<MemoryStorage>();
  Time now;
};

TEST_CASE("lines are put once the first of them has waited, and at the end") {
  Rig rig;
  const auto writer = rig.Open();
  CHECK(writer->Append("a\n").ok());
  rig.now += seconds(9);
  CHECK(writer->Append("b\n").ok());
  CHECK(rig.storage->files().empty());
  rig.now += seconds(1);
  CHECK(writer->Tick().ok());
  CHECK(rig.Joined() == "a\nb\n");
  CHECK(writer->Append("c\n").ok());
  CHECK(rig.Joined() == "a\nb\n");
  CHECK(writer->Keep().ok());
  CHECK(rig.Joined() == "a\nb\nc\n");
  CHECK(rig.storage->files().size() == 1);
}

TEST_CASE(
    "a full segment is followed by another, and those of an earlier process stay as they are") {
  Rig rig;
  {
    const auto writer = rig.Open(4);
    for (const char* line : {"a\n", "b\n", "c\n"}) {
      CHECK(writer->Append(line).ok());
      CHECK(writer->Keep().ok());
    }
  }
  const auto writer = rig.Open(4);
  CHECK(writer->Append("d\n").ok());
  CHECK(writer->Keep().ok());
  CHECK(rig.Joined() == "a\nb\nc\nd\n");
  const auto files = rig.storage->files();
  CHECK(files.at("segments://run/metrics/000000.jsonl") == "a\nb\n");
  CHECK(files.at("segments://run/metrics/000001.jsonl") == "c\n");
  CHECK(files.at("segments://run/metrics/000002.jsonl") == "d\n");
}

TEST_CASE("while nothing can be put lines are kept, up to a bound") {
  Rig rig;
  const auto writer = rig.Open();
  bool away = true;
  rig.storage->fault = [&](const std::string& operation, const std::string&) {
    return away && operation == "finish" ? absl::UnavailableError("away") : absl::OkStatus();
  };
  CHECK(writer->Append(std::string(60, 'a') + "\n").ok());
  CHECK(absl::IsUnavailable(writer->Keep()));
  CHECK(absl::IsResourceExhausted(writer->Append(std::string(60, 'b') + "\n")));
  CHECK(writer->Append("c\n").ok());
  // It does not try again at once.
  CHECK(writer->Tick().ok());
  away = false;
  rig.now += seconds(10);
  CHECK(writer->Tick().ok());
  CHECK(rig.Joined() == std::string(60, 'a') + "\nc\n");
}

TEST_CASE("without segments there is no log, and other files are none") {
  const Rig rig;
  const TempFolder folder;
  CHECK(absl::IsNotFound(JoinSegments(kFolder, folder / "joined")));
  REQUIRE(WriteStored(std::string(kFolder) + "/notes.jsonl", "x").ok());
  CHECK(absl::IsNotFound(JoinSegments(kFolder, folder / "joined")));
}

}  // namespace
}  // namespace leeway::segments
