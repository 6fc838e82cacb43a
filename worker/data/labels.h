// The labels that each loss takes.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// The labels that a job accepts.
struct LabelRule {
  // Implicit, because a loss alone is a rule.
  LabelRule(v1::Loss loss, uint32_t classes = 0) : loss(loss), classes(classes) {}
  // The rule of the job's loss and, where the last layer gives it, its number of scores.
  static LabelRule OfJob(const v1::TrainingJob& job);

  v1::Loss loss;
  // The number of classes that the model distinguishes; 0 if it is not known.
  uint32_t classes;
  // The index of the layer whose units are `classes`. Meaningless if `classes` is 0.
  int layer = 0;
};

// The value of Dataset::classes() where all labels are below `labels`.
uint32_t ClassesOf(v1::Loss loss, uint32_t labels);

// Returns the label in the form that the loss takes. Softmax: a class number from 0, below
// rule.classes. Logistic: 0 or 1, and -1 becomes 0. Squared: any finite number. INVALID_ARGUMENT
// otherwise, without a place: "label 2.5: ...".
absl::StatusOr<float> CheckLabel(double label, const LabelRule& rule);

// Reads the labels of one file, one after the other. With logistic, a file has the labels 0 and 1,
// or -1 and 1: all three of them would be more than two classes.
class LabelReader {
 public:
  explicit LabelReader(const LabelRule& rule) : rule_(rule) {}
  // Like CheckLabel, but the first label that contradicts an earlier one is INVALID_ARGUMENT, too.
  absl::StatusOr<float> Read(double label);
  // With logistic, the file's label of the class that is not 1: -1 or 0.
  std::optional<int> negative() const { return negative_; }

 private:
  const LabelRule rule_;
  std::optional<int> negative_;
};

}  // namespace leeway
