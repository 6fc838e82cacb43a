// Examples in memory, normalised as they are copied out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "common/philox.h"
#include "leeway/v1/job.pb.h"
#include "worker/data/augmenter.h"
#include "worker/data/batch.h"
#include "worker/data/examples.h"
#include "worker/data/normalizer.h"
#include "worker/data/shape.h"

namespace leeway {

// Immutable, so thread-safe. Bytes of a file are held as bytes.
class Dataset {
 public:
  // `classes` as classes() tells. INVALID_ARGUMENT if there are no examples or `normalize` does not
  // fit.
  static absl::StatusOr<std::unique_ptr<Dataset>> Create(Examples examples, uint32_t classes,
                                                         const v1::Normalize& normalize);

  size_t size() const { return examples_.size(); }
  const ImageShape& shape() const { return examples_.shape; }
  // A class number, 0 or 1, or the target of a regression: whatever the job's loss takes.
  float label(size_t i) const { return examples_.labels[i]; }
  std::span<const float> labels() const { return examples_.labels; }
  // With softmax the largest label in the files read, plus 1 (some of those examples may be held
  // out); with logistic 2; with squared 0. A model may have more scores than a file has classes.
  uint32_t classes() const { return classes_; }
  // Of the values in memory.
  uint64_t bytes() const { return examples_.bytes(); }

  // Example i, normalised: shape().elements() floats, NHWC.
  void CopyExample(size_t i, float* out) const;
  // Examples [first, first + count), within size().
  void CopyBatch(size_t first, size_t count, Batch& batch) const;
  // The examples `rows`, augmented with draws from `draws` unless augmenter.none().
  void CopyRows(std::span<const uint32_t> rows, const Augmenter& augmenter, RandomStream draws,
                Batch& batch) const;

 private:
  Dataset(Examples examples, uint32_t classes, Normalizer normalizer);
  void Resize(size_t count, Batch& batch) const;

  const Examples examples_;
  const uint32_t classes_;
  const Normalizer normalizer_;
};

// What the model is evaluated on: the job's `test` source, or the held-out examples of all files of
// its `train` source; null if it has neither. Never augmented. Errors name file and place.
absl::StatusOr<std::unique_ptr<Dataset>> OpenTestData(const v1::TrainingJob& job,
                                                      const std::string& data_dir);
// The same; INVALID_ARGUMENT unless its examples have this shape, that of the training data.
absl::StatusOr<std::unique_ptr<Dataset>> OpenTestDataOf(const v1::TrainingJob& job,
                                                        const std::string& data_dir,
                                                        const ImageShape& shape);

}  // namespace leeway
