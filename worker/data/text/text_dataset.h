// A dataset whose examples are windows of texts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/data/dataset.h"
#include "worker/data/text/tokens.h"

namespace leeway {

// A part of a text. All windows of the part are within it.
struct TextPart {
  // The name of the text's file in errors.
  std::string path;
  std::shared_ptr<const Tokens> tokens;
  size_t first = 0;
  size_t count = 0;
};

// Example i of a part is the window of `context` tokens that begins at token i * context of the
// part. Its shape is context x 1 x 1. Its labels are the tokens that follow each token of the
// window. With Windows::kDrawn, which is for training, CopyRows lets the window begin at that token
// or at any of the `context` - 1 tokens after it.
//
// A part of n tokens has (n - 1) / context examples. With kDrawn it has n / context - 1, because
// the last window must end within the part wherever it begins. No window spans two parts.
class TextDataset final : public Dataset {
 public:
  enum class Windows { kInPlace, kDrawn };

  // Returns INVALID_ARGUMENT if `parts` is empty, or a part is too short for an example. Returns
  // RESOURCE_EXHAUSTED beyond kMaxExamples.
  static absl::StatusOr<std::unique_ptr<TextDataset>> Create(std::vector<TextPart> parts,
                                                             uint32_t context, uint32_t vocabulary,
                                                             Windows windows);

  size_t size() const override { return ends_.back(); }
  const ImageShape& shape() const override { return shape_; }
  size_t labels_each() const override { return shape_.height; }
  std::span<const float> labels() const override { return {}; }
  uint32_t classes() const override { return vocabulary_; }
  uint64_t bytes() const override;

  absl::Status CopyBatch(size_t first, size_t count, Batch& batch) const override;
  // Makes one random draw for each window.
  absl::Status CopyRows(std::span<const uint32_t> rows, const Augmenter& augmenter,
                        RandomStream draws, Batch& batch) const override;

 private:
  TextDataset(std::vector<TextPart> parts, uint32_t context, uint32_t vocabulary, Windows windows);
  size_t ExamplesOf(const TextPart& part) const;
  // Copies example `row` as example `i` of the batch. The window begins `later` tokens after the
  // start of the example.
  void CopyWindow(size_t row, size_t later, size_t i, Batch& batch) const;

  const std::vector<TextPart> parts_;
  const ImageShape shape_;
  const uint32_t vocabulary_;
  const Windows windows_;
  // The total number of examples of each part and all parts before it.
  std::vector<size_t> ends_;
};

}  // namespace leeway
