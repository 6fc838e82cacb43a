#include "client/calls/contribution_memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/shm/shared_layout.h"
#include "common/status.h"

namespace leeway {
namespace {

using Word = std::atomic<uint64_t>;

// The control page begins with these two words. Two words for each block follow.
constexpr size_t kGeneration = 0;
constexpr size_t kBegun = 1;
constexpr size_t SequenceOf(uint32_t block) { return 2 + 2 * size_t{block}; }
constexpr size_t ExamplesOf(uint32_t block) { return SequenceOf(block) + 1; }
uint64_t WordsOf(uint64_t blocks) { return 2 + 2 * blocks; }

// Returns the size of the control page in bytes, rounded up to whole pages.
uint64_t ControlBytes(uint64_t blocks) {
  return (WordsOf(blocks) * sizeof(Word) + kSharedPageBytes - 1) / kSharedPageBytes *
         kSharedPageBytes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ContributionMemory>> ContributionMemory::Make(uint64_t total) {
  // The model's layout is not known yet. Control words for `most` blocks are always enough, because
  // a block has at least 16 elements (BlockLayout).
  const uint64_t most = std::min<uint64_t>(total, kSharedBytesMax);
  ASSIGN_OR_RETURN(auto arena, SharedArena::Create(ControlBytes(most) + most * sizeof(float)));
  return std::unique_ptr<ContributionMemory>(new ContributionMemory(std::move(arena), total));
}

absl::Status ContributionMemory::Begin(const BlockLayout& layout, uint64_t generation) {
  if (layout.total() != total_) {
    return absl::InvalidArgumentError(absl::StrCat("the memory for contributions was made for ",
                                                   total_, " elements, but the model has ",
                                                   layout.total()));
  }
  const uint64_t control = ControlBytes(layout.blocks());
  if (memory_ == nullptr) {
    ASSIGN_OR_RETURN(memory_, arena_->Allocate(control + total_ * sizeof(float)));
    // This is the first range of its arena, so the reader knows where it is.
    std::memset(memory_.get(), 0, control);
  }
  words_ = {reinterpret_cast<Word*>(memory_.get()), WordsOf(layout.blocks())};
  values_ = control;
  words_[kBegun].fetch_add(1, std::memory_order_relaxed);
  Withdraw();
  words_[kGeneration].store(generation, std::memory_order_release);
  std::memset(memory_.get() + values_, 0, total_ * sizeof(float));
  return absl::OkStatus();
}

FloatBuffer ContributionMemory::Vector() const {
  auto* floats = reinterpret_cast<float*>(memory_.get() + values_);
  return FloatBuffer(std::shared_ptr<float>(memory_, floats), total_);
}

void ContributionMemory::Publish(uint64_t clock, uint64_t examples, BlockRange blocks) {
  for (uint32_t block = blocks.first; block < blocks.first + blocks.count; ++block) {
    words_[ExamplesOf(block)].store(examples, std::memory_order_relaxed);
    words_[SequenceOf(block)].store(clock + 1, std::memory_order_release);
  }
}

void ContributionMemory::Withdraw() {
  for (size_t word = SequenceOf(0); word < words_.size(); word += 2) {
    words_[word].store(0, std::memory_order_relaxed);
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

absl::StatusOr<ContributionView> ContributionView::Map(const v1::MemoryOffer& offer,
                                                       const BlockLayout& layout) {
  ContributionView view;
  ASSIGN_OR_RETURN(view.mapping_, SharedMapping::Map(offer));
  ASSIGN_OR_RETURN(view.words_, view.mapping_->Words(kSharedPageBytes, WordsOf(layout.blocks())));
  ASSIGN_OR_RETURN(view.values_,
                   view.mapping_->Floats(kSharedPageBytes + ControlBytes(layout.blocks()),
                                         layout.total() * sizeof(float)));
  return view;
}

ContributionView::Found ContributionView::Look(uint64_t generation, uint64_t clock,
                                               uint32_t block) const {
  const uint64_t begun = words_[kBegun].load(std::memory_order_acquire);
  if (words_[kGeneration].load(std::memory_order_acquire) != generation) return {};
  const uint64_t sequence = words_[SequenceOf(block)].load(std::memory_order_acquire);
  if (sequence > clock + 1) return {State::kPassed, 0, begun};
  if (sequence < clock + 1) return {};
  return {State::kHere, words_[ExamplesOf(block)].load(std::memory_order_relaxed), begun};
}

bool ContributionView::Stands(const Found& found, uint64_t clock, uint32_t block) const {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return words_[kBegun].load(std::memory_order_relaxed) == found.begun &&
         words_[SequenceOf(block)].load(std::memory_order_relaxed) == clock + 1;
}

}  // namespace leeway
