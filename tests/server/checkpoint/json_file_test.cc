// JSON records that detect damage, and coordinator.json, which is such a record.
#include "server/checkpoint/json_file.h"

#include <filesystem>

#include "common/files/files.h"
#include "server/checkpoint/coordinator_record.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace leeway::json_file {
namespace {

v1::CoordinatorRecord Sample() {
  v1::CoordinatorRecord record;
  record.set_job_id(7);
  record.set_generation(3);
  record.set_message("said \"no\",\nand left: \xc3\xa9");
  record.mutable_placement()->add_shards()->set_replica(1);
  record.add_server_nonces(0xffffffffffffffff);
  return record;
}

TEST_CASE("a record is read as it was written, in the format that this build writes") {
  const TempFolder folder;
  CHECK(ReadCoordinatorRecord(folder.path()).value() == std::nullopt);
  v1::CoordinatorRecord record = Sample();
  REQUIRE(WriteCoordinatorRecord(folder.path(), record).ok());
  record.set_format(kCoordinatorRecordFormat);
  const auto read = ReadCoordinatorRecord(folder.path());
  REQUIRE(read.ok());
  REQUIRE(read->has_value());
  CHECK((*read)->SerializeAsString() == record.SerializeAsString());
}

TEST_CASE("what could not be read again is not written, and what is there stays") {
  const TempFolder folder;
  REQUIRE(WriteCoordinatorRecord(folder.path(), Sample()).ok());
  v1::CoordinatorRecord large = Sample();
  large.set_message(std::string(1 << 20, 'x'));
  CHECK(absl::IsResourceExhausted(WriteCoordinatorRecord(folder.path(), large)));
  CHECK((*ReadCoordinatorRecord(folder.path()))->generation() == 3);
  // A file of exactly the limit can be read.
  const std::string path = folder / "file";
  REQUIRE(WriteJsonFile("file", path, 1 << 20, Sample()).ok());
  const uint64_t bytes = std::filesystem::file_size(path);
  CHECK(WriteJsonFile("file", path, bytes, Sample()).ok());
  CHECK(absl::IsResourceExhausted(WriteJsonFile("file", path, bytes - 1, Sample())));
  v1::CoordinatorRecord read;
  CHECK(ReadJsonFile("file", path, bytes, read).ok());
}

TEST_CASE("a newer format is told from a damaged record") {
  const TempFolder folder;
  v1::CoordinatorRecord newer = Sample();
  newer.set_format(kCoordinatorRecordFormat + 1);
  const std::string path = folder / kCoordinatorRecordName;
  REQUIRE(WriteJsonFile("record", path, 1 << 20, newer).ok());
  CHECK(absl::IsUnimplemented(ReadCoordinatorRecord(folder.path()).status()));
  std::string text = *ReadFile(path, 1 << 20);
  text[text.find("\"7\"") + 1] = '8';
  REQUIRE(WriteFileAtomically(path, text).ok());
  CHECK(absl::IsDataLoss(ReadCoordinatorRecord(folder.path()).status()));
}

}  // namespace
}  // namespace leeway::json_file
