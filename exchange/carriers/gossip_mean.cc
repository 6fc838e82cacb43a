#include "exchange/carriers/gossip_mean.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "common/status.h"

namespace leeway {
namespace {

// Returns rates that leave the mean of the trained elements as it is.
ContributionRates SkipAll(uint64_t trained) {
  return std::make_shared<const std::vector<UpdatePart>>(
      std::vector<UpdatePart>{{.end = trained, .skip = true}});
}

}  // namespace

GossipMean::GossipMean(const v1::RegisterWorkerReply& registration, ParameterClient& client,
                       std::function<Time()> now)
    : sync_(registration.job().consistency().mode() == v1::CONSISTENCY_MODE_SYNC),
      trained_(registration.schema().trained()),
      mean_clocks_(registration),
      client_(client),
      reader_(client, std::move(now)),
      mean_(registration.schema().total()),
      change_(client.MakeVector()) {}

absl::StatusOr<std::optional<uint64_t>> GossipMean::Read(uint64_t clock, std::span<float> weights,
                                                         Time deadline) {
  ASSIGN_OR_RETURN(const std::optional<uint64_t> version, reader_.Read(clock, weights, deadline));
  if (!version) return version;
  version_ = *version;
  std::ranges::copy(weights, mean_.data());
  return version;
}

void GossipMean::Begin(uint64_t clock) {
  clock_ = clock;
  is_told_ = false;
  is_mean_ = mean_clocks_.IsMean(clock, version_);
}

absl::Status GossipMean::Tell(std::span<const float> x, uint64_t examples) {
  RETURN_IF_ERROR(Await(Time::max()).status());
  is_told_ = true;
  // A contribution without examples would not count at all.
  examples = std::max<uint64_t>(examples, 1);
  float* const change = change_.data();
  // Averaged elements hold values, not changes.
  for (uint64_t i = trained_; i < x.size(); ++i) change[i] = x[i];
  if (!is_mean_) {
    told_ = client_.Push(clock_, examples, change_.span(), kAllBlocks, SkipAll(trained_));
    return absl::OkStatus();
  }
  // Others have moved the mean since this worker last read it.
  if (!sync_) RETURN_IF_ERROR(reader_.ReadLatest(mean_.span()));
  for (uint64_t i = 0; i < trained_; ++i) change[i] = mean_.data()[i] - x[i];
  told_ = client_.PushPull(clock_, examples, change_.span(), mean_.span(), kAllBlocks);
  return absl::OkStatus();
}

absl::StatusOr<bool> GossipMean::Await(Time deadline) {
  if (!told_) return true;
  const auto told = client_.Wait(*told_, deadline);
  if (absl::IsDeadlineExceeded(told.status()) && !client_.IsOver(*told_)) return false;
  RETURN_IF_ERROR(told.status());
  told_.reset();
  version_ = told->version;
  return true;
}

void GossipMean::Settle() {
  if (told_) client_.Settle(*told_);
  told_.reset();
}

double GossipMean::DistanceOf(std::span<const float> weights) const {
  double sum = 0;
  for (uint64_t i = 0; i < trained_; ++i) {
    const double difference = static_cast<double>(weights[i]) - mean_.data()[i];
    sum += difference * difference;
  }
  return std::sqrt(sum);
}

}  // namespace leeway
