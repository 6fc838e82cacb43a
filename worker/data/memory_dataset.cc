#include "worker/data/memory_dataset.h"

#include <algorithm>
#include <utility>

#include "common/status.h"

namespace leeway {
namespace {

// The number of rows that are prefetched ahead of the copy. The rows of a batch are scattered over
// all memory, so without a prefetch the copy would wait for each row.
constexpr size_t kAhead = 2;
constexpr size_t kCacheLine = 64;
// The number of bytes of a row that are prefetched. The processor itself prefetches the rest of
// longer rows.
constexpr size_t kMaxPrefetch = 4096;

template <typename T>
void Prefetch(const T* row, size_t elements) {
  const char* bytes = reinterpret_cast<const char*>(row);
  const size_t size = std::min(elements * sizeof(T), kMaxPrefetch);
  for (size_t at = 0; at < size; at += kCacheLine) __builtin_prefetch(bytes + at);
}

}  // namespace

MemoryDataset::MemoryDataset(Examples examples, uint32_t classes, Normalizer normalizer)
    : examples_(std::move(examples)), classes_(classes), normalizer_(std::move(normalizer)) {}

absl::StatusOr<std::unique_ptr<MemoryDataset>> MemoryDataset::Create(
    Examples examples, uint32_t classes, const v1::Normalize& normalize) {
  if (examples.size() == 0) return absl::InvalidArgumentError("data: the source has no examples");
  ASSIGN_OR_RETURN(Normalizer normalizer, Normalizer::Create(normalize, examples));
  return std::unique_ptr<MemoryDataset>(
      new MemoryDataset(std::move(examples), classes, std::move(normalizer)));
}

void MemoryDataset::CopyExample(size_t i, float* out) const {
  const size_t elements = shape().elements();
  std::visit([&](const auto& values) { normalizer_.Apply(values.data() + i * elements, out); },
             examples_.values);
}

absl::Status MemoryDataset::CopyBatch(size_t first, size_t count, Batch& batch) const {
  Resize(count, batch);
  for (size_t i = 0; i < count; ++i) {
    CopyExample(first + i, batch.features.data() + i * shape().elements());
    batch.labels[i] = examples_.labels[first + i];
  }
  return absl::OkStatus();
}

absl::Status MemoryDataset::CopyRows(std::span<const uint32_t> rows, const Augmenter& augmenter,
                                     RandomStream draws, Batch& batch) const {
  Resize(rows.size(), batch);
  const size_t elements = shape().elements();
  std::visit(
      [&](const auto& values) {
        std::decay_t<decltype(values)> scratch(augmenter.none() ? 0 : elements);
        for (size_t i = 0; i < rows.size(); ++i) {
          if (i + kAhead < rows.size())
            Prefetch(values.data() + rows[i + kAhead] * elements, elements);
          const auto* example = values.data() + rows[i] * elements;
          if (!augmenter.none()) {
            augmenter.Apply(example, draws, scratch.data());
            example = scratch.data();
          }
          normalizer_.Apply(example, batch.features.data() + i * elements);
          batch.labels[i] = examples_.labels[rows[i]];
        }
      },
      examples_.values);
  return absl::OkStatus();
}

}  // namespace leeway
