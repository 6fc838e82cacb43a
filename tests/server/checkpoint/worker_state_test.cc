#include "server/checkpoint/worker_state.h"

#include "common/files/sha256.h"
#include "tests/server/checkpoint/sample.h"
#include "tests/temp_folder.h"

namespace leeway::worker_state {
namespace {

TEST_CASE("a worker's state is written in chunks and read back in other chunks") {
  TempFolder folder;
  const std::string path = folder / WorkerStateFileName(7, 1, 3);
  const WorkerStateId id{kJob, 500, 7};
  std::string expected;
  auto writer = WorkerStateWriter::Create(path, id);
  REQUIRE(writer.ok());
  for (size_t i = 0; i < 50; ++i) {
    const std::string chunk(i * 1013, static_cast<char>(i));
    expected += chunk;
    REQUIRE(writer->Append(chunk).ok());
  }
  const auto saved = writer->Finish();
  REQUIRE(saved.ok());
  REQUIRE(saved->file() == "worker-7-life-1-clock-3.lwck");
  REQUIRE(saved->sha256() == HexSha256(*ReadFile(path, saved->bytes())));

  const auto reader = WorkerStateReader::Open(path);
  REQUIRE(reader.ok());
  REQUIRE(reader->id() == id);
  REQUIRE(reader->size() == expected.size());
  std::string got;
  for (std::string chunk = "x"; !chunk.empty(); got += chunk)
    chunk = *reader->Read(got.size(), 4999);
  REQUIRE(got == expected);
  REQUIRE(reader->Read(~uint64_t{0}, 10)->empty());
}

TEST_CASE("a state of no bytes is legal") {
  TempFolder folder;
  REQUIRE(WriteWorkerState(folder / "a", {}, "").ok());
  REQUIRE(WorkerStateReader::Open(folder / "a")->size() == 0);
}

TEST_CASE("every flipped bit and every truncation of a worker's state is found") {
  TempFolder folder;
  const std::string path = folder / "state";
  REQUIRE(WriteWorkerState(path, {kJob, 3, 1}, "local weights and slots").ok());
  const std::string good = *ReadFile(path, 1000);
  const auto refused = [&](const std::string& content) {
    Overwrite(path, content);
    const absl::Status status = WorkerStateReader::Open(path).status();
    return absl::IsDataLoss(status) && status.message().find(path) != absl::string_view::npos;
  };
  for (size_t i = 0; i < good.size(); ++i) {
    CAPTURE(i);
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      REQUIRE(refused(bad));
    }
    REQUIRE(refused(good.substr(0, i)));
  }
  REQUIRE(refused(good + "x"));
}

}  // namespace
}  // namespace leeway::worker_state
