// The examples of a source, which come out as batches.
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

// Immutable but for what is fetched ahead; thread-safe.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual size_t size() const = 0;
  virtual const ImageShape& shape() const = 0;
  // Labels of one example: 1, or one a position.
  virtual size_t labels_each() const { return 1; }
  // The label of each example: a class number, 0 or 1, or the target of a regression, whatever the
  // job's loss takes. Empty where an example has several.
  virtual std::span<const float> labels() const = 0;
  // With softmax the largest label in the files read, plus 1 (some of those examples may be held
  // out), or the tokens of the vocabulary; with logistic 2; with squared 0. A model may have more
  // scores than a file has classes.
  virtual uint32_t classes() const = 0;
  // Names of the features, where the files have names.
  virtual std::span<const std::string> columns() const { return {}; }
  // What it takes of memory. Files that are mapped take none.
  virtual uint64_t bytes() const = 0;
  // Whether files are read and decoded for each batch, so that loading one takes its time.
  virtual bool decodes() const { return false; }

  // Says that these examples will be read soon, in this order: what is not on this machine yet is
  // fetched meanwhile.
  virtual void WillNeed(std::span<const uint32_t> rows) const {}

  // Examples [first, first + count), within size(). Errors are those of files that are read only
  // now.
  virtual absl::Status CopyBatch(size_t first, size_t count, Batch& batch) const = 0;
  // For training: the examples `rows`, with draws from `draws`: augmented unless augmenter.none(),
  // and windows of a text begin at drawn places.
  virtual absl::Status CopyRows(std::span<const uint32_t> rows, const Augmenter& augmenter,
                                RandomStream draws, Batch& batch) const = 0;

 protected:
  // Makes room for `count` examples, none of them mixed or replaced.
  void Resize(size_t count, Batch& batch) const;
};

}  // namespace leeway
