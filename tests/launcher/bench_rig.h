// Shared by the tests of benchmarks and of the doctor.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/status/statusor.h"
#include "bench/base/bench_process.h"
#include "common/files/files.h"
#include "launcher/commands/commands.h"
#include "tests/catch.h"

namespace leeway::testing {

inline constexpr double kSeconds = 0.02;

// Returns the value. Without one the test fails with the error's text.
template <typename T>
T Take(absl::StatusOr<T> value) {
  INFO(value.status().ToString());
  REQUIRE(value.ok());
  return *std::move(value);
}

inline int Run(std::vector<std::string> arguments) {
  std::vector<const char*> pointers = {"leeway"};
  for (const std::string& argument : arguments) pointers.push_back(argument.c_str());
  return RunLeeway(static_cast<int>(pointers.size()), pointers.data());
}

inline Json ReadJson(const std::string& path) {
  const std::string text = Take(ReadFile(path, 1 << 24));
  Json document = Json::parse(text, nullptr, false);
  REQUIRE_FALSE(document.is_discarded());
  return document;
}

}  // namespace leeway::testing
