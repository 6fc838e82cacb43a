#include "worker/data/pictures/picture_dataset.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/data/examples.h"
#include "worker/data/pictures/picture.h"
#include "worker/data/pictures/resize.h"

namespace leeway {
namespace {

// Returns true if an error of DecodePicture concerns the file's content, so that it is the same on
// every host.
bool IsDamage(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsResourceExhausted(status);
}

}  // namespace

PictureDataset::PictureDataset(std::string data_dir, PictureIndex index, const ImageShape& shape,
                               uint32_t classes, Normalizer normalizer, bool replaces)
    : data_dir_(std::move(data_dir)),
      index_(std::move(index)),
      shape_(shape),
      classes_(classes),
      normalizer_(std::move(normalizer)),
      replaces_(replaces),
      ahead_(data_dir_) {}

absl::StatusOr<std::unique_ptr<PictureDataset>> PictureDataset::Create(
    std::string data_dir, PictureIndex index, const v1::ImageFolder& source, uint32_t classes,
    const v1::Normalize& normalize) {
  if (index.files.empty()) return absl::InvalidArgumentError("data: the source has no examples");
  const uint32_t sides[] = {source.height(), source.width(), 3};
  ASSIGN_OR_RETURN(const ImageShape shape, MakeShape(sides));
  const Examples bytes{shape, std::vector<uint8_t>(), {}};
  ASSIGN_OR_RETURN(Normalizer normalizer, Normalizer::Create(normalize, bytes));
  const bool replaces = source.damaged() == v1::DAMAGED_PICTURE_REPLACE;
  return std::unique_ptr<PictureDataset>(new PictureDataset(
      std::move(data_dir), std::move(index), shape, classes, std::move(normalizer), replaces));
}

uint64_t PictureDataset::bytes() const {
  uint64_t sum = index_.labels.size() * (sizeof(float) + sizeof(std::string));
  for (const std::string& file : index_.files) sum += file.size();
  return sum;
}

absl::Status PictureDataset::Decode(const MappedFile& file, uint8_t* out) const {
  ASSIGN_OR_RETURN(const Picture picture,
                   DecodePicture(file.path, file.content.bytes(), shape_.height, shape_.width));
  ScaleAndCrop(picture, shape_.height, shape_.width, out);
  return absl::OkStatus();
}

void PictureDataset::WillNeed(std::span<const uint32_t> rows) const {
  for (const uint32_t row : rows) ahead_.WillNeed(index_.files[row]);
}

absl::StatusOr<bool> PictureDataset::DecodeWhole(size_t i, uint8_t* out) const {
  ASSIGN_OR_RETURN(MappedFile file, ReadPicture(data_dir_, index_.files[i]));
  absl::Status status = Decode(file, out);
  if (!IsDamage(status)) return status.ok() ? absl::StatusOr<bool>(false) : status;
  if (!replaces_) {
    constexpr char kRemedy[] =
        "; set damaged: replace in its source to use another picture of its class instead";
    return absl::Status(status.code(), absl::StrCat(status.message(), kRemedy));
  }
  size_t other = i;
  do {
    LogOnce(other, status);
    other = NextOfClass(other);
    if (other == i) {
      return Annotate(status, "every picture of the class is damaged; one of them");
    }
    ASSIGN_OR_RETURN(file, ReadPicture(data_dir_, index_.files[other]));
    status = Decode(file, out);
  } while (IsDamage(status));
  RETURN_IF_ERROR(status);
  return true;
}

size_t PictureDataset::NextOfClass(size_t i) const {
  const std::vector<float>& labels = index_.labels;
  if (i + 1 < labels.size() && labels[i + 1] == labels[i]) return i + 1;
  return static_cast<size_t>(std::ranges::lower_bound(labels, labels[i]) - labels.begin());
}

void PictureDataset::LogOnce(size_t i, const absl::Status& damage) const {
  {
    MutexLock lock(mutex_);
    if (!logged_.insert(i).second) return;
  }
  spdlog::warn("{}; another picture of its class is used instead", std::string(damage.message()));
}

absl::Status PictureDataset::CopyBatch(size_t first, size_t count, Batch& batch) const {
  Resize(count, batch);
  std::vector<uint8_t> decoded(shape_.elements());
  for (size_t i = 0; i < count; ++i) ahead_.WillNeed(index_.files[first + i]);
  for (size_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(const bool replaced, DecodeWhole(first + i, decoded.data()));
    batch.replaced += replaced ? 1 : 0;
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
    ASSIGN_OR_RETURN(const bool replaced, DecodeWhole(rows[i], decoded.data()));
    batch.replaced += replaced ? 1 : 0;
    if (!augmenter.none()) augmenter.Apply(decoded.data(), draws, augmented.data());
    normalizer_.Apply(augmenter.none() ? decoded.data() : augmented.data(),
                      batch.features.data() + i * decoded.size());
    batch.labels[i] = index_.labels[rows[i]];
  }
  return absl::OkStatus();
}

}  // namespace leeway
