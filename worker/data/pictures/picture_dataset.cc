#include "worker/data/pictures/picture_dataset.h"

#include <utility>
#include <vector>

#include "common/status.h"
#include "worker/data/data_file.h"
#include "worker/data/examples.h"
#include "worker/data/limits.h"
#include "worker/data/pictures/picture.h"
#include "worker/data/pictures/resize.h"

namespace leeway {

PictureDataset::PictureDataset(std::string data_dir, PictureIndex index, const ImageShape& shape,
                               uint32_t classes, Normalizer normalizer)
    : data_dir_(std::move(data_dir)),
      index_(std::move(index)),
      shape_(shape),
      classes_(classes),
      normalizer_(std::move(normalizer)),
      ahead_(data_dir_) {}

absl::StatusOr<std::unique_ptr<PictureDataset>> PictureDataset::Create(
    std::string data_dir, PictureIndex index, uint32_t height, uint32_t width, uint32_t classes,
    const v1::Normalize& normalize) {
  if (index.files.empty()) return absl::InvalidArgumentError("data: there are no examples");
  const uint32_t sides[] = {height, width, 3};
  ASSIGN_OR_RETURN(const ImageShape shape, MakeShape(sides));
  const Examples bytes{shape, std::vector<uint8_t>(), {}};
  ASSIGN_OR_RETURN(Normalizer normalizer, Normalizer::Create(normalize, bytes));
  return std::unique_ptr<PictureDataset>(new PictureDataset(std::move(data_dir), std::move(index),
                                                            shape, classes, std::move(normalizer)));
}

uint64_t PictureDataset::bytes() const {
  uint64_t sum = index_.labels.size() * (sizeof(float) + sizeof(std::string));
  for (const std::string& file : index_.files) sum += file.size();
  return sum;
}

absl::Status PictureDataset::Decode(size_t i, uint8_t* out) const {
  ASSIGN_OR_RETURN(const MappedFile file,
                   ReadDataFile(data_dir_, index_.files[i], kMaxPictureBytes));
  ASSIGN_OR_RETURN(const Picture picture,
                   DecodePicture(file.path, file.content.bytes(), shape_.height, shape_.width));
  ScaleAndCrop(picture, shape_.height, shape_.width, out);
  return absl::OkStatus();
}

void PictureDataset::WillNeed(std::span<const uint32_t> rows) const {
  for (const uint32_t row : rows) ahead_.WillNeed(index_.files[row]);
}

absl::Status PictureDataset::CopyBatch(size_t first, size_t count, Batch& batch) const {
  Resize(count, batch);
  std::vector<uint8_t> decoded(shape_.elements());
  for (size_t i = 0; i < count; ++i) ahead_.WillNeed(index_.files[first + i]);
  for (size_t i = 0; i < count; ++i) {
    RETURN_IF_ERROR(Decode(first + i, decoded.data()));
    normalizer_.Apply(decoded.data(), batch.features.data() + i * decoded.size());
    batch.labels[i] = index_.labels[first + i];
  }
  return absl::OkStatus();
}

absl::Status PictureDataset::CopyRows(std::span<const uint32_t> rows, const Augmenter& augmenter,
                                      RandomStream draws, Batch& batch) const {
  Resize(rows.size(), batch);
  WillNeed(rows);
  std::vector<uint8_t> decoded(shape_.elements()), augmented(augmenter.none() ? 0 : decoded.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    RETURN_IF_ERROR(Decode(rows[i], decoded.data()));
    if (!augmenter.none()) augmenter.Apply(decoded.data(), draws, augmented.data());
    normalizer_.Apply(augmenter.none() ? decoded.data() : augmented.data(),
                      batch.features.data() + i * decoded.size());
    batch.labels[i] = index_.labels[rows[i]];
  }
  return absl::OkStatus();
}

}  // namespace leeway
