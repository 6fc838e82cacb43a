#include "worker/training/device_encoder.h"

#include <algorithm>
#include <utility>

#include "common/buffer.h"
#include "common/loss_scale.h"
#include "common/status.h"
#include "exchange/gradient_guard.h"

namespace leeway {
namespace {

// Returns true if the host reads or changes the values before they leave.
bool HostTouches(const v1::TrainingJob& job, uint64_t steps_per_clock) {
  const v1::Exchange& exchange = job.exchange();
  if (job.workers().per_host() == v1::PER_HOST_COMBINE) return true;
  if (exchange.has_delta() || exchange.has_elastic()) return false;
  return steps_per_clock > 1 || GuardsGradients(exchange) || ScalesLoss(job);
}

}  // namespace

bool EncodesOnDevice(const v1::TrainingJob& job, uint64_t steps_per_clock,
                     const BlockLayout& layout, const CodecPlan& plan) {
  if (!plan.compresses_contributions() || HostTouches(job, steps_per_clock)) return false;
  for (uint32_t block = 0; block < layout.blocks(); ++block) {
    const v1::Encoding encoding = plan.contribution(block).encoding();
    if (encoding != v1::ENCODING_RAW && !GroupFormatOf(encoding).has_value()) return false;
  }
  return true;
}

std::vector<DeviceEncoder::Place> DeviceEncoder::PlacesOf(const BlockLayout& layout,
                                                          const CodecPlan& plan) {
  std::vector<Place> places;
  size_t begin = 0;
  for (uint32_t block = 0; block < layout.blocks(); ++block) {
    const Codec& codec = plan.contribution(block);
    const auto format = GroupFormatOf(codec.encoding());
    const size_t bytes = format.has_value() ? codec.MaxBytes(layout.Range(block).count) : 0;
    places.push_back({format, begin, bytes});
    begin += FloatsFor(bytes);
  }
  return places;
}

size_t DeviceEncoder::EncodedFloats(const BlockLayout& layout, const CodecPlan& plan) {
  const Place last = PlacesOf(layout, plan).back();
  return last.begin + FloatsFor(last.bytes);
}

DeviceEncoder::DeviceEncoder(Backend& backend, const BlockLayout& layout, std::vector<Place> places)
    : backend_(backend), layout_(layout), places_(std::move(places)), clocks_(layout.blocks()) {}

absl::StatusOr<std::unique_ptr<DeviceEncoder>> DeviceEncoder::Make(Backend& backend,
                                                                   const BlockLayout& layout,
                                                                   const CodecPlan& plan) {
  std::unique_ptr<DeviceEncoder> encoder(
      new DeviceEncoder(backend, layout, PlacesOf(layout, plan)));
  ASSIGN_OR_RETURN(encoder->after_, FlatVector::OnDevice(backend, layout.total()));
  ASSIGN_OR_RETURN(encoder->before_, FlatVector::OnDevice(backend, layout.total()));
  // The buffer is at least one page long, so that it can be pinned.
  const size_t floats = std::max(EncodedFloats(layout, plan), FloatBuffer::kPageFloats);
  ASSIGN_OR_RETURN(encoder->encoded_, FlatVector::Twins(backend, FloatBuffer(floats)));
  return encoder;
}

uint32_t DeviceEncoder::RunFrom(uint64_t clock, uint32_t first, uint32_t end) const {
  const auto format = places_[first].format;
  if (!format.has_value()) return 0;
  const bool again = clocks_[first] == clock;
  uint32_t next = first + 1;
  while (next < end && places_[next].format == format && (clocks_[next] == clock) == again &&
         layout_.Range(next - 1).count % BlockLayout::kGroupElements == 0) {
    ++next;
  }
  return next - first;
}

void DeviceEncoder::EncodeRun(uint64_t clock, BlockRange blocks, const float* contribution) {
  const ElementRange range = ElementsOf(layout_, blocks);
  float* const after = after_.device().data() + range.offset;
  float* const before = before_.device().data() + range.offset;
  if (clocks_[blocks.first] == clock) {
    backend_.Copy(range.count, before, after);
  } else {
    backend_.Copy(range.count, after, before);
  }
  std::fill_n(clocks_.begin() + blocks.first, blocks.count, clock);
  const Place& place = places_[blocks.first];
  backend_.Encode(*place.format, range.count, contribution + range.offset, after,
                  encoded_.device().data() + place.begin);
}

void DeviceEncoder::Start(uint64_t clock, BlockRange blocks, const float* contribution,
                          std::span<float> host) {
  const uint32_t end = blocks.first + blocks.count;
  bool encoded = false;
  for (uint32_t block = blocks.first; block < end;) {
    const uint32_t run = RunFrom(clock, block, end);
    if (run > 0) EncodeRun(clock, {block, run}, contribution);
    encoded = encoded || run > 0;
    block += std::max(run, 1u);
  }
  if (encoded) backend_.Wait(Stream::kDown, backend_.Record(Stream::kCompute));
  for (uint32_t block = blocks.first; block < end; ++block) {
    if (places_[block].format.has_value()) continue;
    const ElementRange range = layout_.Range(block);
    backend_.CopyToHost(Stream::kDown, contribution + range.offset,
                        host.subspan(range.offset, range.count));
  }
  const Place& first = places_[blocks.first];
  const Place& last = places_[end - 1];
  const size_t floats = last.begin + FloatsFor(last.bytes) - first.begin;
  if (floats == 0) return;
  backend_.CopyToHost(Stream::kDown, encoded_.device().data() + first.begin,
                      encoded_.host().subspan(first.begin, floats));
}

EncodedContribution DeviceEncoder::Encode(const Codec&, uint32_t block, uint64_t,
                                          std::span<const float>) {
  const Place& place = places_[block];
  const auto* const bytes = reinterpret_cast<const uint8_t*>(encoded_.host().data() + place.begin);
  return {{bytes, place.bytes}};
}

absl::Status DeviceEncoder::Read(uint64_t clock, std::span<float> out) const {
  for (uint32_t block = 0; block < layout_.blocks(); ++block) {
    const ElementRange range = layout_.Range(block);
    const bool undo = clocks_[block].has_value() && *clocks_[block] >= clock;
    const FlatVector& from = undo ? before_ : after_;
    backend_.CopyToHost(Stream::kCompute, from.device().data() + range.offset,
                        out.subspan(range.offset, range.count));
  }
  return backend_.Await(backend_.Record(Stream::kCompute));
}

void DeviceEncoder::Undo(uint64_t clock) {
  for (uint32_t block = 0; block < layout_.blocks(); ++block) {
    if (!clocks_[block].has_value() || *clocks_[block] < clock) continue;
    const ElementRange range = layout_.Range(block);
    backend_.Copy(range.count, before_.device().data() + range.offset,
                  after_.device().data() + range.offset);
    clocks_[block].reset();
  }
  // Waits, because the caller may free the memory after this function. If the device has failed,
  // the backend's next call returns the error.
  backend_.Await(backend_.Record(Stream::kCompute)).IgnoreError();
}

absl::Status DeviceEncoder::Set(std::span<const float> values) {
  std::fill(clocks_.begin(), clocks_.end(), std::nullopt);
  return after_.Set(values);
}

}  // namespace leeway
