#include "common/files/temporary_folder.h"

#include <filesystem>

#include <sys/wait.h>

#include "tests/catch.h"

namespace leeway::temporary_folder {
namespace {

TEST_CASE("a temporary folder is its owner's, and goes with the object") {
  const auto where = GENERATE(TemporaryIn::kFiles, TemporaryIn::kMemory);
  std::string path;
  {
    const auto folder = TemporaryFolder::Make("leeway-test", where).value();
    path = folder->path();
    CHECK(std::filesystem::is_directory(path));
    CHECK(std::filesystem::status(path).permissions() == std::filesystem::perms::owner_all);
  }
  CHECK_FALSE(std::filesystem::exists(path));
  // No child process is left.
  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);
}

}  // namespace
}  // namespace leeway::temporary_folder
