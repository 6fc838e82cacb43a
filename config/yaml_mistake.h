// The cause of a YAML syntax error.
//
// yaml-cpp names what it missed, at the place where it noticed: for a bracket that is never closed
// that is some later line. This looks for the cause itself: brackets and tabs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace leeway {

struct YamlMistake {
  // From 0, as yaml-cpp counts.
  int line = 0;
  int column = 0;
  std::string message;
};

// What is wrong in `text`, which is UTF-8 and which the parser refused in `line` (from 0). Nothing,
// if no bracket and no tab up to that line explains it.
std::optional<YamlMistake> FindYamlMistake(std::string_view text, int line);

// What a message of yaml-cpp's means, and what to do; itself where it says enough.
std::string_view InPlainWords(std::string_view message);

}  // namespace leeway
