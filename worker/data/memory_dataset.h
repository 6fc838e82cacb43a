// Examples in memory, which are normalised as they are copied out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/data/dataset.h"
#include "worker/data/examples.h"
#include "worker/data/normalizer.h"

namespace leeway {

// If a file has bytes, keeps them as bytes in memory.
class MemoryDataset final : public Dataset {
 public:
  // Makes a dataset. `classes` is the value for classes(). Returns INVALID_ARGUMENT if `examples`
  // is empty or `normalize` does not fit.
  static absl::StatusOr<std::unique_ptr<MemoryDataset>> Create(Examples examples, uint32_t classes,
                                                               const v1::Normalize& normalize);

  size_t size() const override { return examples_.size(); }
  const ImageShape& shape() const override { return examples_.shape; }
  std::span<const float> labels() const override { return examples_.labels; }
  uint32_t classes() const override { return classes_; }
  std::span<const std::string> columns() const override { return examples_.columns; }
  uint64_t bytes() const override { return examples_.bytes(); }

  // Copies example i, normalised, to `out`: shape().elements() floats, NHWC.
  void CopyExample(size_t i, float* out) const;
  absl::Status CopyBatch(size_t first, size_t count, Batch& batch) const override;
  absl::Status CopyRows(std::span<const uint32_t> rows, const Augmenter& augmenter,
                        RandomStream draws, Batch& batch) const override;

 private:
  MemoryDataset(Examples examples, uint32_t classes, Normalizer normalizer);

  const Examples examples_;
  const uint32_t classes_;
  const Normalizer normalizer_;
};

}  // namespace leeway
