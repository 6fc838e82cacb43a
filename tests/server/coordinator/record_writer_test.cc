// How long a record that cannot be written is tried.
#include "server/coordinator/record_writer.h"

#include "server/coordinator/run_folder_sink.h"
#include "tests/catch.h"
#include "tests/common/storage/memory_storage.h"

namespace leeway::record_writer {
namespace {

constexpr char kRun[] = "s3://full/run";
constexpr Duration kPatience = std::chrono::seconds(120);

// After how many seconds a record with this outcome is given up on a full disk.
int SecondsUntilGivenUp(v1::JobState outcome) {
  const auto storage = std::make_shared<MemoryStorage>();
  MountStorage("s3://full/", storage);
  storage->fault = [](const std::string&, const std::string&) {
    return absl::ResourceExhaustedError("No space left on device");
  };
  RunFolderSink sink(kRun, 7, 1, std::nullopt);
  RecordWriter writer(&sink, kPatience);
  WriteRecord command;
  command.record.set_outcome(outcome);
  Time now{};
  for (int second = 0; second <= 1000; ++second, now += std::chrono::seconds(1)) {
    const auto attempt = writer.Write(command, /*hopeless=*/false, [&] { return now; });
    CHECK(attempt.news == (second == 0));
    CHECK_THAT(std::string(attempt.status.message()), Catch::Contains("No space left"));
    if (attempt.settled) return second;
  }
  return -1;
}

TEST_CASE("a record that others wait for is tried for long, and that of a failure for seconds") {
  CHECK(SecondsUntilGivenUp(v1::JOB_STARTING) == 120);
  CHECK(SecondsUntilGivenUp(v1::JOB_FINISHED) == 120);
  CHECK(SecondsUntilGivenUp(v1::JOB_FAILED) == 5);
}

}  // namespace
}  // namespace leeway::record_writer
