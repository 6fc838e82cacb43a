#include "common/command_line/command_line.h"

#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "common/exit_code.h"
#include "tests/catch.h"

namespace leeway::command_line {
namespace {

// Returns the first line printed for these arguments; empty if the program may go on.
std::string Said(std::vector<const char*> arguments) {
  CLI::App app("A program.", "prog");
  std::string reach, bind;
  uint64_t number = 0;
  app.add_option("--coordinator", reach)->check(AddressToReach());
  app.add_option("--listen", bind)->check(AddressToBind());
  CLI::App* train = app.add_subcommand("train", "Train");
  train->add_option("JOB", reach)->required();
  train->add_option("--run-dir", bind);
  train->add_option("--clock", number);
  app.add_subcommand("bench", "Measure")->add_subcommand("transport", "The wire");
  app.require_subcommand(0, 1);
  arguments.insert(arguments.begin(), "prog");
  std::ostringstream said;
  std::streambuf* const before = std::cerr.rdbuf(said.rdbuf());
  const auto code = ParseCommandLine(app, static_cast<int>(arguments.size()), arguments.data());
  std::cerr.rdbuf(before);
  if (code.has_value()) CHECK(*code == kExitUsage);
  return said.str().substr(0, said.str().find('\n'));
}

TEST_CASE("a mistyped command or option is named, with the one that was meant") {
  CHECK(Said({"train", "job.yaml"}).empty());
  CHECK(Said({"trian", "job.yaml", "--set", "a=b"}) ==
        "prog: unknown command 'trian'; did you mean 'train'?");
  CHECK(Said({"bench", "transprt"}) ==
        "prog: unknown command 'transprt'; did you mean "
        "'transport'?");
  CHECK(Said({"train", "job.yaml", "--run-dri=x", "y"}) ==
        "prog: unknown option '--run-dri'; did you mean '--run-dir'?");
  CHECK(Said({"train", "--run-dri", "x"}) ==
        "prog: unknown option '--run-dri'; did you mean '--run-dir'?");
  CHECK(Said({"train", "job.yaml", "-x"}) == "prog: unknown option '-x'");
  CHECK(Said({"train", "a", "b", "c"}) == "prog: unexpected argument 'b'");
  CHECK(Said({"train"}) == "prog: JOB is required");
  CHECK(Said({"train", "a", "--run-dir"}) == "prog: --run-dir: 1 required TEXT missing");
  CHECK(Said({"train", "a", "--clock", "x"}) == "prog: the value has the wrong kind: --clock = x");
  CHECK(Said({"\xff\x1b"}) == "prog: unknown command '\\xff\\x1b'; use one of train, bench");
}

TEST_CASE("an empty value is refused by the name of its option, and takes no other argument") {
  const std::string empty = ": the value is empty: give a value, or leave the option out";
  CHECK(Said({"train", "a", "--run-dir", ""}) == "prog: --run-dir" + empty);
  CHECK(Said({"train", "a", "--clock", ""}) == "prog: --clock" + empty);
  CHECK(Said({"--listen", ""}) == "prog: --listen" + empty);
  CHECK(Said({"train", ""}) == "prog: JOB" + empty);
  CHECK(Said({"train", "--run-dir=", "a"}) == "prog: --run-dir" + empty);
  CHECK(Said({"train", "a", "--run-dir", "b="}).empty());
}

TEST_CASE("an address is checked before anything begins") {
  CHECK(Said({"--coordinator", "[::1]:7000"}).empty());
  CHECK(Said({"--listen", "0.0.0.0:0"}).empty());
  for (const char* bad : {"foo", "foo:0", "foo:x", ":7000", "dns:///foo:1", "::1:7000"}) {
    CHECK(Said({"--coordinator", bad}) ==
          std::string("prog: --coordinator: ") + bad +
              ": not an address to connect to; expected HOST:PORT, with a port of 1 to 65535");
  }
  CHECK_THAT(Said({"--listen", "foo"}),
             Catch::StartsWith("prog: --listen: foo: not an address; expected HOST:PORT"));
}

}  // namespace
}  // namespace leeway::command_line
