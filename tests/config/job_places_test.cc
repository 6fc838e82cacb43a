// Errors that are found after the job was read, and their places in it.
#include <string>

#include "common/files/files.h"
#include "common/job_key.h"
#include "config/job.h"
#include "tests/catch.h"
#include "tests/config/sample_job.h"
#include "tests/temp_folder.h"

namespace leeway::job_places {
namespace {

std::string Placed(const absl::Status& status, const JobOverrides& overrides = {}) {
  const TempFolder folder;
  REQUIRE(WriteFileAtomically(folder / "job.yaml", testing::Sample()).ok());
  const absl::StatusOr<PlacedJob> job = LoadPlacedJob(folder / "job.yaml", overrides);
  REQUIRE(job.status().ToString() == "OK");
  const absl::Status placed = job->places.Place(status);
  CHECK(placed.code() == status.code());
  const std::string message(placed.message());
  const std::string prefix = folder.path() + "/";
  return message.rfind(prefix, 0) == 0 ? message.substr(prefix.size()) : message;
}

TEST_CASE("an error about a key gets the key's line, or the override that set it") {
  const absl::Status error = AtKey(absl::NotFoundError("a: no such file"), "data.train.images");
  CHECK(Placed(error) == "job.yaml:10:30: data.train.images: a: no such file");
  CHECK(Placed(error, {{"data.train.images=b"}, {}}) ==
        "--set data.train.images=b: a: no such file");
}

TEST_CASE("an error about no key, or about one that is not there, is not lost") {
  CHECK(Placed(absl::NotFoundError("a: gone")) == "a: gone");
  CHECK(Placed(AtKey(absl::InvalidArgumentError("is bad"), "data.normalize.std")) ==
        "job.yaml:9:1: data.normalize.std: is bad");
  CHECK(Placed(absl::OkStatus()).empty());
}

}  // namespace
}  // namespace leeway::job_places
