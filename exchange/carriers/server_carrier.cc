#include "exchange/carriers/server_carrier.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/status.h"

namespace leeway {

ServerCarrier::ServerCarrier(ParameterClient& client, std::function<Time()> now)
    : client_(client), now_(std::move(now)) {}

absl::StatusOr<std::optional<uint64_t>> ServerCarrier::Read(uint64_t clock,
                                                            std::span<float> weights,
                                                            Time deadline) {
  if (!reading_) reading_ = client_.Pull(clock, weights);
  const auto read = client_.Wait(*reading_, deadline);
  if (absl::IsDeadlineExceeded(read.status()) && !client_.IsOver(*reading_)) return std::nullopt;
  // After any other error the worker is at its end. The read may then go on, because the vector
  // outlives the client.
  if (read.ok() || absl::IsAlreadyExists(read.status())) StopReading();
  RETURN_IF_ERROR(read.status());
  return read->version;
}

// Ends a Read in progress, so that nothing is written to its vector any more.
void ServerCarrier::StopReading() {
  if (reading_) client_.Settle(*reading_);
  reading_.reset();
}

absl::Status ServerCarrier::ReadLatest(std::span<float> weights) {
  return client_.Wait(client_.PullLatest(weights)).status();
}

void ServerCarrier::Begin(uint64_t clock) {
  under_way_ = true;
  handed_in_ = false;
  blocks_answered_ = 0;
  began_ = ended_ = now_();
  waited_ = Duration::zero();
  report_ = {.clock = clock, .version = std::numeric_limits<uint64_t>::max()};
}

void ServerCarrier::NoteFirst() {
  if (!std::exchange(handed_in_, true)) began_ = now_();
}

void ServerCarrier::Add(BlockRange blocks, ParameterClient::Ticket ticket) {
  parts_.push_back({blocks, std::move(ticket)});
}

void ServerCarrier::Contribute(BlockRange blocks, uint64_t examples, const ContributionRates& rates,
                               std::span<float> contribution, std::span<float> weights) {
  NoteFirst();
  Add(blocks, client_.PushPull(report_.clock, examples, contribution, weights, blocks, rates));
}

void ServerCarrier::Take(const Part& part, const ParameterClient::Result& result) {
  report_.staleness = std::max(report_.staleness, result.staleness);
  report_.version = std::min(report_.version, result.version);
  blocks_answered_ += part.blocks.count;
  if (answered()) ended_ = now_();
}

absl::StatusOr<bool> ServerCarrier::WaitWhere(const std::function<bool(const Part&)>& wanted,
                                              Time deadline) {
  if (parts_.empty()) return true;
  const Time began = now_();
  absl::Status status;
  bool late = false;
  for (auto part = parts_.begin(); part != parts_.end();) {
    if (!wanted(*part)) {
      ++part;
      continue;
    }
    const auto result = client_.Wait(part->ticket, deadline);
    if (!result.ok()) {
      late = absl::IsDeadlineExceeded(result.status()) && !client_.IsOver(part->ticket);
      if (!late) status = result.status();
      break;
    }
    Take(*part, *result);
    part = parts_.erase(part);
  }
  // If the last answer has come, the wait ended at that moment.
  waited_ += (answered() ? ended_ : now_()) - began;
  RETURN_IF_ERROR(status);
  return !late;
}

absl::StatusOr<bool> ServerCarrier::Await(std::span<const ElementRange> elements, Time deadline) {
  const auto touches = [&](const Part& part) {
    return std::any_of(elements.begin(), elements.end(), [&](const ElementRange& range) {
      const BlockRange blocks = BlocksOf(client_.layout(), range);
      return blocks.first < part.blocks.first + part.blocks.count &&
             part.blocks.first < blocks.first + blocks.count;
    });
  };
  return WaitWhere(touches, deadline);
}

absl::StatusOr<bool> ServerCarrier::AwaitAll(Time deadline) {
  return WaitWhere([](const Part&) { return true; }, deadline);
}

void ServerCarrier::Poll() {
  // Takes answers in the order in which the parts were sent. The order of arrival does not matter,
  // because all answers are taken once all have come.
  while (!parts_.empty()) {
    const auto result = client_.Wait(parts_.front().ticket, Time{});
    // The answer has not come yet, or is an error. The next wait returns the error.
    if (!result.ok()) return;
    Take(parts_.front(), *result);
    parts_.erase(parts_.begin());
  }
}

bool ServerCarrier::Abandon() {
  StopReading();
  for (const Part& part : parts_) client_.Settle(part.ticket);
  parts_.clear();
  under_way_ = false;
  return true;
}

ExchangeReport ServerCarrier::End() {
  under_way_ = false;
  report_.exchange_seconds = Seconds(ended_ - began_);
  report_.wait_seconds = Seconds(waited_);
  return report_;
}

}  // namespace leeway
