// The labels that each loss accepts.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// The labels that a job accepts.
struct LabelRule {
  // The constructor is implicit, because a loss alone is a rule.
  LabelRule(v1::Loss loss, uint32_t classes = 0) : loss(loss), classes(classes) {}
  // Returns the rule for the job's loss and, if the last layer specifies it, its number of scores.
  static LabelRule OfJob(const v1::TrainingJob& job);

  v1::Loss loss;
  // The number of classes that the model distinguishes. 0 if the number is not known.
  uint32_t classes;
  // The index of the layer whose units are `classes`. Meaningless if `classes` is 0.
  int layer = 0;
};

// Returns the value of Dataset::classes() for labels that are all below `labels`.
uint32_t ClassesOf(v1::Loss loss, uint32_t labels);

// Returns the label in the form that the loss reads. For softmax this is a class number from 0,
// below rule.classes. For logistic it is 0 or 1, and -1 becomes 0. For squared it is any finite
// number. Returns INVALID_ARGUMENT for any other label. The message begins with "label 2.5: ..."
// and does not say where the label is.
absl::StatusOr<float> CheckLabel(double label, const LabelRule& rule);

// Reads the labels of one file, one after the other. With logistic, a file has the labels 0 and 1,
// or -1 and 1. A file with all three of them would have more than two classes.
class LabelReader {
 public:
  explicit LabelReader(const LabelRule& rule) : rule_(rule) {}
  // Does the same as CheckLabel, but also returns INVALID_ARGUMENT for the first label that
  // contradicts an earlier one.
  absl::StatusOr<float> Read(double label);
  // With logistic, returns the label that the file has for the class other than 1: -1 or 0.
  std::optional<int> negative() const { return negative_; }

 private:
  const LabelRule rule_;
  std::optional<int> negative_;
};

}  // namespace leeway
