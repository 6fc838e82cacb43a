#include "launcher/supervision/log_tail.h"

#include "common/files/files.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace leeway::log_tail {

TEST_CASE("The tail of a log is its last lines under its name") {
  const TempFolder folder;
  const std::string path = folder / "worker-1.log";
  REQUIRE(WriteFileAtomically(path, "one\ntwo\n\nthree\n").ok());
  CHECK(LogTail(path, 2) == "\n  the end of " + path + ":\n    two\n    three");
}

TEST_CASE("A log that is empty or not there says so") {
  const TempFolder folder;
  CHECK(LogTail(folder / "none.log", 2) == "\n  " + folder.path() + "/none.log is empty");
}

TEST_CASE("Of a long log only the end is read") {
  const TempFolder folder;
  const std::string path = folder / "long.log";
  REQUIRE(WriteFileAtomically(path, std::string(1 << 20, 'x') + "\nlast\n").ok());
  CHECK(LogTail(path, 1).ends_with(":\n    last"));
}

TEST_CASE("The last line is escaped and cut, and without a log there is none") {
  const TempFolder folder;
  const std::string path = folder / "worker-0.log";
  REQUIRE(WriteFileAtomically(path, "Traceback\n\x1b[31mValueError: no\tdata\n\n").ok());
  CHECK(LastLine(path) == "\\x1b[31mValueError: no\\tdata");
  CHECK(LogTail(path, 1).ends_with("\n    \\x1b[31mValueError: no\\tdata"));
  REQUIRE(WriteFileAtomically(path, std::string(5000, 'x') + "\n").ok());
  CHECK(LastLine(path).size() < 320);
  CHECK(LastLine(folder / "none.log").empty());
}

}  // namespace leeway::log_tail
