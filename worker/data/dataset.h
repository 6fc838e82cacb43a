// The interface of a source of examples. Examples are copied out of it as batches.
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

// Immutable, except for the files that are fetched ahead. Thread-safe.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual size_t size() const = 0;
  virtual const ImageShape& shape() const = 0;
  // Returns the number of labels of one example: 1, or the number of positions of a text.
  virtual size_t labels_each() const { return 1; }
  // Returns the label of each example, in the form that the job's loss reads: a class number, 0 or
  // 1, or the target of a regression. Empty if an example has several labels.
  virtual std::span<const float> labels() const = 0;
  // Returns the number of classes. With softmax it is the largest label in the files that were
  // read, plus 1, or the number of tokens in the vocabulary. Held-out examples count, too. With
  // logistic it is 2, and with squared it is 0. A model may have more scores than a file has
  // classes.
  virtual uint32_t classes() const = 0;
  // Returns the names of the features. Empty if the files have no names.
  virtual std::span<const std::string> columns() const { return {}; }
  // Returns the number of bytes of memory that the examples occupy. Mapped files count as 0.
  virtual uint64_t bytes() const = 0;
  // Returns true if loading a batch takes noticeable time, because files are read and decoded for
  // it.
  virtual bool decodes() const { return false; }

  // Announces that the examples `rows` will be read soon, in this order. Files that are not on this
  // machine yet are fetched in the meantime.
  virtual void WillNeed(std::span<const uint32_t> rows) const {}

  // Copies the examples [first, first + count), which must be below size(). If this call is the
  // first to read a file, it may return the errors of reading it.
  virtual absl::Status CopyBatch(size_t first, size_t count, Batch& batch) const = 0;
  // Copies the examples `rows` for training. The examples are augmented unless augmenter.none(),
  // and windows of a text begin at random places. All random numbers come from `draws`.
  virtual absl::Status CopyRows(std::span<const uint32_t> rows, const Augmenter& augmenter,
                                RandomStream draws, Batch& batch) const = 0;

 protected:
  // Makes room for `count` examples that are neither mixed nor replaced.
  void Resize(size_t count, Batch& batch) const;
};

}  // namespace leeway
