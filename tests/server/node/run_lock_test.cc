#include "server/node/run_lock.h"

#include <optional>
#include <utility>

#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace leeway::run_lock {

TEST_CASE("A run folder has one server 0, and another one when that has ended") {
  const TempFolder folder;
  auto first = LockRun(folder.path());
  REQUIRE(first.ok());
  std::optional<Descriptor> held(*std::move(first));
  const auto second = LockRun(folder.path());
  CHECK(absl::IsUnavailable(second.status()));
  CHECK_THAT(std::string(second.status().message()),
             Catch::Contains("another server 0 runs a job in --run-dir " + folder.path()));
  const TempFolder other;
  CHECK(LockRun(other.path()).ok());
  held.reset();
  CHECK(LockRun(folder.path()).ok());
}

}  // namespace leeway::run_lock
