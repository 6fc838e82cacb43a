// Detects that a run has become much worse while it trained.
#pragma once

#include <span>
#include <string>

#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// Looks at evaluations in the order of their clocks. If the last one is much worse than the best
// one, returns a description of the best one, such as "test accuracy was 97.12 % at clock 1,200";
// else returns an empty string. Much worse is an accuracy 10 points below the best one. Without an
// accuracy it is a loss of 1.5 times the best one that has also gone back more than half of the way
// to the first loss. Overfitting raises a loss, too, but mostly leaves the accuracy unchanged.
std::string MuchWorse(std::span<const v1::EvaluationMetrics> evaluations);

}  // namespace leeway
