#include "worker/data/text/text_dataset.h"

#include <algorithm>
#include <set>
#include <utility>

#include "common/counted.h"
#include "common/status.h"
#include "worker/data/limits.h"

namespace leeway {

TextDataset::TextDataset(std::vector<TextPart> parts, uint32_t context, uint32_t vocabulary,
                         Windows windows)
    : parts_(std::move(parts)), shape_{context, 1, 1}, vocabulary_(vocabulary), windows_(windows) {}

size_t TextDataset::ExamplesOf(const TextPart& part) const {
  const size_t context = shape_.height;
  if (windows_ == Windows::kInPlace) return part.count == 0 ? 0 : (part.count - 1) / context;
  return part.count < context ? 0 : part.count / context - 1;
}

absl::StatusOr<std::unique_ptr<TextDataset>> TextDataset::Create(std::vector<TextPart> parts,
                                                                 uint32_t context,
                                                                 uint32_t vocabulary,
                                                                 Windows windows) {
  if (parts.empty()) return absl::InvalidArgumentError("data: the source has no examples");
  std::unique_ptr<TextDataset> dataset(
      new TextDataset(std::move(parts), context, vocabulary, windows));
  size_t end = 0;
  for (const TextPart& part : dataset->parts_) {
    const size_t examples = dataset->ExamplesOf(part);
    if (examples == 0) {
      const bool drawn = windows == Windows::kDrawn;
      return absl::InvalidArgumentError(absl::StrCat(
          part.path, ": has ", Counted(part.count, "token"), drawn ? " to train on" : " to test on",
          ", but one example of context ", context, " needs ",
          drawn ? 2 * uint64_t{context} : uint64_t{context} + 1, ": lower the context"));
    }
    end += examples;
    if (end > kMaxExamples) {
      return absl::ResourceExhaustedError(
          absl::StrCat(part.path, ": more than ", kMaxExamples, " examples: raise the context"));
    }
    dataset->ends_.push_back(end);
  }
  return dataset;
}

uint64_t TextDataset::bytes() const {
  uint64_t sum = 0;
  std::set<const Tokens*> counted;
  for (const TextPart& part : parts_) {
    if (counted.insert(part.tokens.get()).second) sum += part.tokens->bytes();
  }
  return sum;
}

void TextDataset::CopyWindow(size_t row, size_t later, size_t i, Batch& batch) const {
  const auto end = std::upper_bound(ends_.begin(), ends_.end(), row);
  const size_t index = static_cast<size_t>(end - ends_.begin());
  const TextPart& part = parts_[index];
  const size_t context = shape_.height;
  const size_t within = row - (index == 0 ? 0 : ends_[index - 1]);
  const size_t start = part.first + within * context + later;
  part.tokens->Copy(start, context, batch.features.data() + i * context);
  part.tokens->Copy(start + 1, context, batch.labels.data() + i * context);
}

absl::Status TextDataset::CopyBatch(size_t first, size_t count, Batch& batch) const {
  Resize(count, batch);
  for (size_t i = 0; i < count; ++i) CopyWindow(first + i, 0, i, batch);
  return absl::OkStatus();
}

absl::Status TextDataset::CopyRows(std::span<const uint32_t> rows, const Augmenter& augmenter,
                                   RandomStream draws, Batch& batch) const {
  Resize(rows.size(), batch);
  for (size_t i = 0; i < rows.size(); ++i) {
    const bool drawn = windows_ == Windows::kDrawn;
    CopyWindow(rows[i], drawn ? draws.Below(shape_.height) : 0, i, batch);
  }
  return absl::OkStatus();
}

}  // namespace leeway
