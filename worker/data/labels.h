// Which labels a loss takes.
#pragma once

#include <cstdint>
#include <optional>

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

// The labels of one file, one after the other. With logistic a file has 0 and 1, or -1 and 1: three
// labels would be two classes.
class LabelReader {
 public:
  explicit LabelReader(const LabelRule& rule) : rule_(rule) {}
  // As CheckLabel; the first label that goes with an earlier one no more is INVALID_ARGUMENT, too.
  absl::StatusOr<float> Read(double label);
  // With logistic, what the file calls the class that is not 1: -1 or 0.
  std::optional<int> negative() const { return negative_; }

 private:
  const LabelRule rule_;
  std::optional<int> negative_;
};

}  // namespace leeway
