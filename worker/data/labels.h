// Which labels a loss takes.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// What is asked of a label.
struct LabelRule {
  // Implicit: a loss alone is a rule.
  LabelRule(v1::Loss loss, uint32_t classes = 0) : loss(loss), classes(classes) {}
  // Of the job's loss and, where its last layer says so, its number of scores.
  static LabelRule OfJob(const v1::TrainingJob& job);

  v1::Loss loss;
  // How many classes the model tells apart; 0: not known.
  uint32_t classes;
  // Index of the layer whose units these are; of no meaning where classes is 0.
  int layer = 0;
};

// What Dataset::classes tells, where the labels are below `labels`.
uint32_t ClassesOf(v1::Loss loss, uint32_t labels);

// The label as the loss wants it. Softmax: a class number from 0, below rule.classes. Logistic: 0
// or 1, and -1 becomes 0. Squared: any finite number. INVALID_ARGUMENT otherwise, without a place:
// "label 2.5: ...".
absl::StatusOr<float> CheckLabel(double label, const LabelRule& rule);

}  // namespace leeway
