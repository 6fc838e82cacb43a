// Detects that a run has become much worse while it trained.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace leeway {

struct Evaluated {
  uint64_t clock = 0;
  double loss = 0;
  // The share of correct classes; absent if the task has no classes.
  std::optional<double> accuracy;
};

// Looks at evaluations in the order of their clocks. If the last one is much worse than the best
// one, returns a description of the best one, such as "test accuracy was 97.12 % at clock 1,200";
// else returns an empty string. Much worse is an accuracy 10 points below the best one. Without an
// accuracy it is a loss of 1.5 times the best one that has also gone back more than half of the way
// to the first loss. Overfitting raises a loss, too, but mostly leaves the accuracy unchanged.
std::string MuchWorse(std::span<const Evaluated> evaluations);

}  // namespace leeway
