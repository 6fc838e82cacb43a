#include "server/peers/met_weights.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/counted.h"
#include "common/status.h"

namespace leeway {
namespace {

// The elements that are mixed at a time, so that they stay in the first-level cache.
constexpr size_t kTile = 1024;

// Returns true if the value is a NaN or an infinity. Unlike std::isfinite, it lets a loop be
// vectorised.
bool IsNotFinite(float value) {
  constexpr uint32_t kExponent = 0x7f800000;
  return (std::bit_cast<uint32_t>(value) & kExponent) == kExponent;
}

size_t FirstNotFinite(std::span<const float> values) {
  return std::find_if(values.begin(), values.end(), IsNotFinite) - values.begin();
}

// Computes out = y + (x - y) / 2. Returns false if a result is not finite.
bool Mix(const FloatPayload& x, std::span<const float> y, float* out) {
  alignas(64) std::array<float, kTile> scratch;
  alignas(64) std::array<float, kTile> tile;
  PayloadReader reader(x);
  uint32_t bad = 0;
  for (size_t from = 0; from < y.size(); from += kTile) {
    const size_t count = std::min(kTile, y.size() - from);
    std::memcpy(tile.data(), reader.Bytes(from, count, scratch.data()), count * sizeof(float));
    for (size_t i = 0; i < count; ++i) {
      const float mean = y[from + i] + (tile[i] - y[from + i]) * 0.5f;
      out[from + i] = mean;
      bad |= IsNotFinite(mean) ? 1u : 0u;
    }
  }
  return bad == 0;
}

absl::Status Wrong(const v1::ExchangeHeader& header, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("worker ", header.rank(), ", block ",
                                                 header.block(), ", clock ", header.clock(), ": ",
                                                 what));
}

Sender SenderOf(const v1::ExchangeHeader& header) {
  return {header.rank(), header.incarnation(), header.clock()};
}

// A sender that has the answer sends nothing else.
bool SaysTaken(const v1::ExchangeHeader& header, const FloatPayload& payload) {
  return payload.bytes() == 0 && header.examples() == 0;
}

}  // namespace

MetWeights::MetWeights(uint32_t rank, const BlockLayout& layout, std::span<const float> weights,
                       const std::shared_ptr<SharedArena>& memory)
    : rank_(rank), layout_(layout), pools_(layout, memory, nullptr) {
  for (uint32_t number = 0; number < layout.blocks(); ++number) {
    const ElementRange range = layout.Range(number);
    blocks_.push_back(std::make_unique<Block>(number));
    SharedFloats values = pools_.Weights(number);
    std::copy_n(weights.data() + range.offset, range.count, values.mutable_data());
    MutexLock lock(blocks_.back()->mutex);
    blocks_.back()->current = std::move(values);
  }
}

absl::Status MetWeights::Check(const v1::ExchangeHeader& header,
                               const FloatPayload& payload) const {
  if (header.block() >= blocks_.size()) {
    return Wrong(header, absl::StrCat("header.block: the block does not exist: the model has ",
                                      Counted(blocks_.size(), "block")));
  }
  if (header.rank() == rank_) {
    return Wrong(header, "header.rank: a worker does not meet its own weights");
  }
  if (SaysTaken(header, payload)) return absl::OkStatus();
  if (header.encoding() != v1::ENCODING_RAW) {
    return Wrong(header, "header.encoding: a meeting needs the values themselves (ENCODING_RAW)");
  }
  const uint64_t wanted = layout_.Range(header.block()).count;
  if (payload.bytes() == wanted * sizeof(float)) return absl::OkStatus();
  return Wrong(header, absl::StrCat("payload: ", payload.bytes(), " bytes, but the block has ",
                                    Counted(wanted, "value"), " of ", sizeof(float), " bytes"));
}

void MetWeights::Meet(const v1::ExchangeHeader& header, FloatPayload payload, Shard::Done done) {
  if (absl::Status status = Check(header, payload); !status.ok()) return done(std::move(status));
  blocks_[header.block()]->turns.Take([self = shared_from_this(), header,
                                       payload = std::move(payload), done = std::move(done)] {
    done(SaysTaken(header, payload) ? self->DropAnswer(header) : self->MeetNow(header, payload));
  });
}

absl::StatusOr<BlockReading> MetWeights::MeetNow(const v1::ExchangeHeader& header,
                                                 const FloatPayload& payload) {
  Block& block = *blocks_[header.block()];
  BlockReading before;
  {
    MutexLock lock(block.mutex);
    ASSIGN_OR_RETURN(const auto decision, block.core.OnMeeting(SenderOf(header)));
    if (decision == MeetingCore::Decision::kRepeat) {
      BlockReading again = block.answers[header.rank()];
      again.duplicate = true;
      return again;
    }
    if (block.ended) return Ended();
    before = ReadingOf(header.block(), block);
  }
  SharedFloats next = pools_.Weights(header.block());
  if (!Mix(payload, before.values.span(), next.mutable_data())) {
    return NotFinite(header, payload, next.span());
  }
  MutexLock lock(block.mutex);
  block.core.OnMet(SenderOf(header));
  block.answers[header.rank()] = before;
  block.current = std::move(next);
  ++block.version;
  return before;
}

absl::Status MetWeights::Ended() const {
  return absl::FailedPreconditionError(
      absl::StrCat("worker ", rank_, " has made its last clock; meet another worker"));
}

absl::StatusOr<BlockReading> MetWeights::DropAnswer(const v1::ExchangeHeader& header) {
  Block& block = *blocks_[header.block()];
  MutexLock lock(block.mutex);
  ASSIGN_OR_RETURN(const bool kept, block.core.OnTaken(SenderOf(header)));
  if (kept) block.answers.erase(header.rank());
  BlockReading acknowledged;
  acknowledged.duplicate = !kept;
  return acknowledged;
}

absl::Status MetWeights::NotFinite(const v1::ExchangeHeader& header, const FloatPayload& payload,
                                   std::span<const float> result) const {
  const size_t bad = payload.FirstNonFinite();
  const uint64_t offset = layout_.Range(header.block()).offset;
  if (bad < payload.size()) {
    return Wrong(header, absl::StrCat("payload: value ", bad, " (element ", offset + bad,
                                      " of the model) is not finite; has the training diverged?"));
  }
  const size_t first = FirstNotFinite(result);
  return Wrong(header, absl::StrCat("payload: value ", first, " (element ", offset + first,
                                    " of the model) is finite, but would not be in worker ", rank_,
                                    "'s block after the meeting; has the training diverged?"));
}

void MetWeights::Subtract(uint32_t block, std::span<const float> change, std::span<float> weights) {
  Mutex mutex;
  CondVar changed;
  bool done = false;
  blocks_[block]->turns.Take([&] {
    SubtractNow(block, change, weights);
    MutexLock lock(mutex);
    done = true;
    changed.NotifyAll();
  });
  // Another thread may have the turn. It only computes, so this does not wait for long.
  MutexLock lock(mutex);
  while (!done) changed.Wait(mutex);
}

void MetWeights::End() {
  for (const auto& block : blocks_) {
    MutexLock lock(block->mutex);
    block->ended = true;
  }
}

void MetWeights::SubtractNow(uint32_t number, std::span<const float> change,
                             std::span<float> weights) {
  Block& block = *blocks_[number];
  SharedFloats before;
  {
    MutexLock lock(block.mutex);
    before = block.current;
  }
  SharedFloats next = pools_.Weights(number);
  const std::span<const float> from = before.span();
  float* const out = next.mutable_data();
  for (size_t i = 0; i < from.size(); ++i) out[i] = from[i] - change[i];
  std::copy_n(out, from.size(), weights.data());
  MutexLock lock(block.mutex);
  block.current = std::move(next);
  ++block.version;
}

BlockReading MetWeights::ReadingOf(uint32_t number, const Block& block) {
  BlockReading reading;
  reading.values = block.current;
  reading.header.set_block(number);
  reading.header.set_version(block.version);
  return reading;
}

}  // namespace leeway
