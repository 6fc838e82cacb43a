// Detects that a run has become much worse while it trained.
#pragma once

#include <span>
#include <string>

#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// Compares the last of the evaluations, which are in the order of their clocks, with the best one.
// If the last one is much worse, returns a description of the best one, such as "test accuracy was
// 97.12 % at clock 1,200". Otherwise returns an empty string. Much worse means that the accuracy is
// 10 points below the best accuracy. Without accuracies, much worse means two things: the loss is
// at least 1.5 times the best loss, and it is more than halfway back to the first loss. Overfitting
// raises the loss, too, but mostly leaves the accuracy unchanged.
std::string MuchWorse(std::span<const v1::EvaluationMetrics> evaluations);

}  // namespace leeway
