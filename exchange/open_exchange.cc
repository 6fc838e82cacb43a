#include "exchange/open_exchange.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/status.h"
#include "exchange/final_blocks.h"

namespace leeway {

OpenExchange::OpenExchange(ParameterClient& client, std::function<Time()> now, HostGroup* group)
    : client_(client), now_(std::move(now)), group_(group) {}

void OpenExchange::Begin(uint64_t clock, uint64_t examples, ContributionRates rates) {
  under_way_ = true;
  examples_ = examples;
  rates_ = std::move(rates);
  blocks_answered_ = 0;
  began_ = ended_ = now_();
  waited_ = Duration::zero();
  report_ = {.clock = clock, .version = std::numeric_limits<uint64_t>::max()};
}

void OpenExchange::SetRates(ContributionRates rates) { rates_ = std::move(rates); }

void OpenExchange::Send(BlockRange blocks, std::span<float> contribution,
                        std::span<float> weights) {
  Send(blocks, examples_, contribution, weights);
}

void OpenExchange::Send(BlockRange blocks, uint64_t examples, std::span<float> contribution,
                        std::span<float> weights) {
  if (parts_.empty() && kept_.empty() && blocks_answered_ == 0) began_ = now_();
  if (group_ == nullptr) {
    parts_.push_back(
        {blocks, client_.PushPull(report_.clock, examples, contribution, weights, blocks, rates_)});
  } else if (group_->leads()) {
    kept_.push_back({blocks, examples, contribution, weights});
    SendComplete().IgnoreError();
  } else {
    group_->Publish(report_.clock, examples, blocks);
    parts_.push_back({blocks, client_.PushPullCombined(report_.clock, weights, blocks)});
  }
}

absl::Status OpenExchange::SendComplete() {
  if (kept_.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(group_->Refresh());
  for (Kept& kept : kept_) RETURN_IF_ERROR(SendComplete(kept));
  std::erase_if(kept_, [](const Kept& kept) { return kept.blocks.count == 0; });
  return absl::OkStatus();
}

absl::Status OpenExchange::SendComplete(Kept& kept) {
  const uint64_t clock = report_.clock;
  const uint32_t end = kept.blocks.first + kept.blocks.count;
  // Neighbouring blocks that are sent in the same way go into one call.
  HostGroup::Combined leaving;
  uint32_t first = kept.blocks.first;
  const auto leave = [&](uint32_t before) {
    const BlockRange blocks{first, before - first};
    if (blocks.count == 0) return;
    parts_.push_back({blocks, leaving.outcome == HostGroup::Outcome::kPassed
                                  ? client_.PushPullCombined(clock, kept.weights, blocks)
                                  : client_.PushPull(clock, leaving.examples, kept.contribution,
                                                     kept.weights, blocks)});
    first = before;
  };
  absl::Status status;
  uint32_t block = first;
  for (; block < end; ++block) {
    const auto combined =
        group_->Combine(clock, block, kept.examples, kept.contribution, kept.weights);
    status = combined.status();
    if (!status.ok() || combined->outcome == HostGroup::Outcome::kMissing) break;
    if (*combined != leaving) leave(block);
    leaving = *combined;
  }
  leave(block);
  kept.blocks = {block, end - block};
  return status;
}

absl::Status OpenExchange::SendRest() {
  const Time began = now_();
  absl::Status status = SendComplete();
  while (status.ok() && !kept_.empty()) {
    status = group_->Pause(report_.clock, began);
    if (status.ok()) status = SendComplete();
  }
  if (group_ != nullptr) waited_ += now_() - began;
  return status;
}

void OpenExchange::Take(const Part& part, const ParameterClient::Result& result) {
  report_.staleness = std::max(report_.staleness, result.staleness);
  report_.version = std::min(report_.version, result.version);
  blocks_answered_ += part.blocks.count;
  if (answered()) ended_ = now_();
}

bool OpenExchange::answered() const { return blocks_answered_ == client_.layout().blocks(); }

absl::StatusOr<bool> OpenExchange::WaitWhere(const std::function<bool(const Part&)>& wanted,
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
  // If the last answer has come, the wait ended with it.
  waited_ += (answered() ? ended_ : now_()) - began;
  RETURN_IF_ERROR(status);
  return !late;
}

absl::StatusOr<bool> OpenExchange::WaitFor(std::span<const ElementRange> elements, Time deadline) {
  const auto touches = [&](const Part& part) {
    return std::any_of(elements.begin(), elements.end(), [&](const ElementRange& range) {
      const BlockRange blocks = BlocksOf(client_.layout(), range);
      return blocks.first < part.blocks.first + part.blocks.count &&
             part.blocks.first < blocks.first + blocks.count;
    });
  };
  return WaitWhere(touches, deadline);
}

absl::StatusOr<bool> OpenExchange::WaitForAll(Time deadline) {
  return WaitWhere([](const Part&) { return true; }, deadline);
}

absl::Status OpenExchange::WaitFor(std::span<const ElementRange> elements) {
  return WaitFor(elements, Time::max()).status();
}

absl::Status OpenExchange::WaitForAll() { return WaitForAll(Time::max()).status(); }

void OpenExchange::Poll() {
  SendComplete().IgnoreError();
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

void OpenExchange::Abandon() {
  for (const Part& part : parts_) client_.Settle(part.ticket);
  parts_.clear();
  kept_.clear();
  under_way_ = false;
}

ExchangeReport OpenExchange::End() {
  under_way_ = false;
  report_.exchange_seconds = Seconds(ended_ - began_);
  report_.wait_seconds = Seconds(waited_);
  return report_;
}

}  // namespace leeway
