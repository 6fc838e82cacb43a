// How a test says that it cannot run here. A remark and a return would count as passed.
#pragma once

#include <string>

#include "tests/catch.h"

namespace leeway::testing {

// Ends the running test case. A program all of whose test cases ended so exits with ctest's code
// for skipped.
[[noreturn]] void Skip(const char* file, int line, const std::string& why);

}  // namespace leeway::testing

// SKIP(why): this machine lacks what the test needs. Not within an assertion, which takes it for a
// fault. What failed before it still counts. (Catch2 2 has no such macro.)
#undef SKIP
#define SKIP(why) ::leeway::testing::Skip(__FILE__, __LINE__, why)
