// Describes the cause of a YAML syntax error in plain words.
//
// yaml-cpp reports what it expected, and where it noticed the mistake. If a bracket is never
// closed, yaml-cpp notices this only on some later line.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace leeway {

// Lines and columns count from 0, as in yaml-cpp.
struct YamlMistake {
  int line = 0;
  int column = 0;
  std::string message;
};

struct OpenBracket {
  // '{' or '['.
  char character = '{';
  int line = 0;
  int column = 0;
};

// Returns the mistake in `text`: where it is, and what to do. `noticed` is yaml-cpp's error. `open`
// is the innermost bracket that was open at that point.
YamlMistake CauseOf(YamlMistake noticed, std::string_view text,
                    const std::optional<OpenBracket>& open);

}  // namespace leeway
