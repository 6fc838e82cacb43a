// A dataset of pictures that are decoded when a batch is loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "common/mutex.h"
#include "leeway/v1/job.pb.h"
#include "worker/data/data_file.h"
#include "worker/data/data_folder.h"
#include "worker/data/dataset.h"
#include "worker/data/normalizer.h"
#include "worker/data/pictures/picture_index.h"

namespace leeway {

// Keeps in memory only the names of the files, and which of them were damaged.
class PictureDataset final : public Dataset {
 public:
  // Makes a dataset. Its examples have the source's `height` x `width` x 3: pictures are scaled to
  // cover that size, and the middle is cut out. `classes` is the value for classes(). Returns
  // INVALID_ARGUMENT if there are no pictures or `normalize` does not fit.
  static absl::StatusOr<std::unique_ptr<PictureDataset>> Create(std::string data_dir,
                                                                PictureIndex index,
                                                                const v1::ImageFolder& source,
                                                                uint32_t classes,
                                                                const v1::Normalize& normalize);

  size_t size() const override { return index_.files.size(); }
  const ImageShape& shape() const override { return shape_; }
  std::span<const float> labels() const override { return index_.labels; }
  uint32_t classes() const override { return classes_; }
  uint64_t bytes() const override;
  bool decodes() const override { return true; }

  void WillNeed(std::span<const uint32_t> rows) const override;

  // Errors name the picture and the problem, and say what to do.
  absl::Status CopyBatch(size_t first, size_t count, Batch& batch) const override;
  absl::Status CopyRows(std::span<const uint32_t> rows, const Augmenter& augmenter,
                        RandomStream draws, Batch& batch) const override;

 private:
  PictureDataset(std::string data_dir, PictureIndex index, const ImageShape& shape,
                 uint32_t classes, Normalizer normalizer, bool replaces);
  // Decodes the picture in the file, and writes it, scaled and cropped, to out[shape().elements()].
  absl::Status Decode(const MappedFile& file, uint8_t* out) const;
  // Decodes picture i. If that picture is damaged and damaged pictures are to be replaced, decodes
  // the next undamaged picture of its class and returns true. The choice is a function of the
  // files, so ranks, lives and resumed runs agree. A file that cannot be read is an error and is
  // not replaced, because another host may be able to read it.
  absl::StatusOr<bool> DecodeWhole(size_t i, uint8_t* out) const;
  // Returns the next picture of the same class after i. The first picture follows the last one.
  size_t NextOfClass(size_t i) const;
  void LogOnce(size_t i, const absl::Status& damage) const EXCLUDES(mutex_);

  const std::string data_dir_;
  const PictureIndex index_;
  const ImageShape shape_;
  const uint32_t classes_;
  const Normalizer normalizer_;
  const bool replaces_;

  mutable DataAhead ahead_;
  mutable Mutex mutex_;
  mutable absl::flat_hash_set<size_t> logged_ GUARDED_BY(mutex_);
};

}  // namespace leeway
