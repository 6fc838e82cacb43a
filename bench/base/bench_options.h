// Reads the values of the benchmarks' flags.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/statusor.h"
#include "common/status.h"

namespace leeway {

// Reads "64K", "4M", "65536" as bytes. K, M and G are powers of 1024. Returns INVALID_ARGUMENT for
// anything else, and for more than 1 TiB.
absl::StatusOr<uint64_t> ParseBytes(const std::string& text);
// Reads the size of a block in the same way. The size must be a multiple of 64, at most 64M.
absl::StatusOr<uint64_t> ParseBlockBytes(const std::string& text);
// Reads a count, such as "25M" or "1000000". K, M and G are powers of 1000. The limits are those of
// ParseBytes.
absl::StatusOr<uint64_t> ParseCount(const std::string& text);

// Parses each text. Returns the values or the first error.
template <typename Parse>
auto ParseEach(const std::vector<std::string>& texts, Parse parse)
    -> absl::StatusOr<std::vector<std::decay_t<decltype(*parse(texts[0]))>>> {
  std::vector<std::decay_t<decltype(*parse(texts[0]))>> values;
  for (const std::string& text : texts) {
    auto value = parse(text);
    if (!value.ok()) return value.status();
    values.push_back(*std::move(value));
  }
  return values;
}

}  // namespace leeway
