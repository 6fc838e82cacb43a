// Whether a run has become much worse while it trained.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace leeway {

struct Evaluated {
  uint64_t clock = 0;
  double loss = 0;
  // Share of right classes, where there are classes.
  std::optional<double> accuracy;
};

// Of evaluations by rising clock: what the best one was, if the last one is much worse, such as
// "test accuracy was 97.12 % at clock 1,200". Much worse is an accuracy 10 points below the best.
// Where there is none, it is a loss of 1.5 times the best, with more than half of the way back to
// the first one. Overfitting raises a loss, too, but mostly leaves the accuracy.
std::string MuchWorse(std::span<const Evaluated> evaluations);

}  // namespace leeway
