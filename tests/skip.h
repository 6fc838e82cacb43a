// How a test says that it cannot run here. A test that prints a remark and returns would count as
// passed.
#pragma once

#include <string>

#include "tests/catch.h"

namespace leeway::testing {

// Ends the running test case. A program whose test cases all ended in this way exits with ctest's
// code for skipped tests.
[[noreturn]] void Skip(const char* file, int line, const std::string& why);

}  // namespace leeway::testing

// SKIP(why): this machine lacks what the test needs. Do not use it within an assertion, which takes
// it for a failure. Earlier failures still count. (Catch2 2 has no such macro.)
#undef SKIP
#define SKIP(why) ::leeway::testing::Skip(__FILE__, __LINE__, why)
