// The interface of a source of examples, which are copied out as batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "common/philox.h"
#include "worker/data/augmenter.h"
#include "worker/data/batch.h"
#include "worker/data/shape.h"

namespace leeway {

// Immutable, except for what is fetched ahead. Thread-safe.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual size_t size() const = 0;
  virtual const ImageShape& shape() const = 0;
  // The number of labels of one example: 1, or one for each position of a text.
  virtual size_t labels_each() const { return 1; }
  // The label of each example, as the job's loss takes it: a class number, 0 or 1, or the target of
  // a regression. Empty where an example has several labels.
  virtual std::span<const float> labels() const = 0;
  // The number of classes. With softmax it is the largest label in the files read, plus 1 (some of
  // those examples may be held out), or the number of tokens in the vocabulary. With logistic it is
  // 2, with squared 0. A model may have more scores than a file has classes.
  virtual uint32_t classes() const = 0;
  // The names of the features, where the files have names.
  virtual std::span<const std::string> columns() const { return {}; }
  // The memory that the examples take. Mapped files count as 0.
  virtual uint64_t bytes() const = 0;
  // Whether loading a batch takes noticeable time, because files are read and decoded for it.
  virtual bool decodes() const { return false; }

  // Announces that the examples `rows` will be read soon, in this order. Files that are not on this
  // machine yet are fetched meanwhile.
  virtual void WillNeed(std::span<const uint32_t> rows) const {}

  // Copies the examples [first, first + count), which are below size(). Errors are those of files
  // that are first read here.
  virtual absl::Status CopyBatch(size_t first, size_t count, Batch& batch) const = 0;
  // Copies the examples `rows` for training. They are augmented unless augmenter.none(), and
  // windows of a text begin at random places. All draws are from `draws`.
  virtual absl::Status CopyRows(std::span<const uint32_t> rows, const Augmenter& augmenter,
                                RandomStream draws, Batch& batch) const = 0;

 protected:
  // Makes room for `count` examples, none of them mixed or replaced.
  void Resize(size_t count, Batch& batch) const;
};

}  // namespace leeway
