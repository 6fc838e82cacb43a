#include "tests/worker/device/fake_streams.h"

#include <algorithm>
#include <utility>

namespace leeway::testing {
namespace {

double DrawEagerness(RandomStream& random) {
  constexpr double kChoices[] = {0, 0.1, 0.5, 0.9};
  return kChoices[random.Below(std::size(kChoices))];
}

}  // namespace

FakeStreams::FakeStreams(uint64_t seed, std::optional<double> eagerness, std::optional<Clock> clock)
    : random_(seed, RandomPurpose::kGenerate),
      eagerness_(eagerness.has_value() ? *eagerness : DrawEagerness(random_)),
      clock_(std::move(clock)) {}

void FakeStreams::Queue(Stream stream, std::function<void()> work, Duration takes) {
  if (clock_.has_value()) {
    // The host's order is one that streams and events allow. The host's own computing counts as the
    // device's time, which goes on meanwhile.
    Time& free = free_[static_cast<size_t>(stream)];
    free = std::max(free, clock_->now()) + takes;
    work();
    return;
  }
  streams_[static_cast<size_t>(stream)].push_back({.work = std::move(work)});
  Advance();
}

StreamEvent FakeStreams::Record(Stream stream) {
  const StreamEvent event{done_.size()};
  done_.push_back(false);
  ends_.push_back(free_[static_cast<size_t>(stream)]);
  if (!clock_.has_value())
    streams_[static_cast<size_t>(stream)].push_back({.records = event.number});
  return event;
}

void FakeStreams::Wait(Stream stream, StreamEvent event) {
  if (event.number == 0) return;
  if (clock_.has_value()) {
    Time& free = free_[static_cast<size_t>(stream)];
    free = std::max(free, ends_[event.number]);
    return;
  }
  streams_[static_cast<size_t>(stream)].push_back({.waits = event.number});
}

bool FakeStreams::IsDone(StreamEvent event) const {
  if (event.number == 0 || done_[event.number]) return true;
  return clock_.has_value() && clock_->now() >= ends_[event.number];
}

bool FakeStreams::MayRun(const std::deque<Item>& stream) const {
  return !stream.empty() && done_[stream.front().waits];
}

bool FakeStreams::RunOne() {
  const auto ready = std::count_if(streams_.begin(), streams_.end(),
                                   [this](const auto& stream) { return MayRun(stream); });
  if (ready == 0) return false;
  uint64_t drawn = random_.Below(ready);
  for (std::deque<Item>& stream : streams_) {
    if (!MayRun(stream) || drawn-- > 0) continue;
    const Item item = std::move(stream.front());
    stream.pop_front();
    if (item.work) item.work();
    if (item.records != 0) done_[item.records] = true;
    return true;
  }
  return false;
}

void FakeStreams::Advance() {
  while (random_.Uniform() < eagerness_ && RunOne()) {
  }
}

bool FakeStreams::RunUntil(StreamEvent event) {
  if (clock_.has_value() && !IsDone(event)) clock_->wait_until(ends_[event.number]);
  while (!IsDone(event)) {
    if (!RunOne()) return false;
  }
  return true;
}

void FakeStreams::Stop() {
  for (std::deque<Item>& stream : streams_) stream.clear();
  std::fill(done_.begin(), done_.end(), true);
}

}  // namespace leeway::testing
