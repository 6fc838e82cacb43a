#include "exchange/carriers/relay_carrier.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "exchange/carriers/payload_sum.h"
#include "exchange/carriers/rates_code.h"

namespace leeway {

RelayCarrier::RelayCarrier(const v1::RegisterWorkerReply& registration, ParameterClient& client,
                           PeerCalls& peers, Outbox& outbox, std::function<Time()> now)
    : client_(client),
      peers_(peers),
      outbox_(outbox),
      rank_(registration.rank()),
      trained_(registration.schema().trained()),
      averaged_(AveragedElementsOf(registration.schema())),
      batches_{std::max(1.0, static_cast<double>(registration.job().data().batch_size())),
               registration.length()},
      reader_(client, now),
      mean_(client.MakeVector()),
      blocks_(client.layout().blocks()),
      steps_(client.layout(), std::move(now)) {
  // Shard k begins at rank k, and its blocks keep this root wherever their holder is.
  const uint32_t workers = registration.job().workers().count();
  for (uint32_t block = 0; block < blocks_.size(); ++block) {
    const uint32_t root = layout().ShardOf(block) % workers;
    blocks_[block].route =
        RouteOf(registration.job().topology().all_reduce().algorithm(), workers, root, rank_);
  }
  outbox_.Open(registration.job_id(), registration.generation(), layout());
}

absl::StatusOr<std::optional<uint64_t>> RelayCarrier::Read(uint64_t clock, std::span<float> weights,
                                                           Time deadline) {
  ASSIGN_OR_RETURN(const std::optional<uint64_t> version, reader_.Read(clock, weights, deadline));
  // This life has published nothing of earlier clocks.
  if (version && !std::exchange(read_, true)) outbox_.KeepFrom(clock);
  return version;
}

void RelayCarrier::Begin(uint64_t clock) {
  // Another worker may still fetch weights of the clock before.
  if (clock > 0 && this->clock() + 1 == clock) outbox_.KeepFrom(clock - 1);
  given_.reset();
  steps_.Begin(clock);
}

std::span<float> RelayCarrier::Of(uint32_t block, std::span<float> vector) const {
  const ElementRange range = layout().Range(block);
  return vector.subspan(range.offset, range.count);
}

float RelayCarrier::WeightOf(uint64_t examples) const {
  return static_cast<float>(static_cast<double>(examples) / batches_.batch_examples);
}

void RelayCarrier::Contribute(BlockRange blocks, uint64_t examples, const ContributionRates& rates,
                              std::span<float> contribution, std::span<float> weights) {
  if (!given_) given_ = {examples, contribution, weights};
  for (uint32_t block = blocks.first; block < blocks.first + blocks.count; ++block) {
    Block& each = blocks_[block];
    each.rates = rates;
    each.rates_code = CodeOf(rates);
    each.added = 0;
    each.examples = examples;
    steps_.Start(block);
    TakeOwn(block);
    each.sum = outbox_.Prepare(NameOf(v1::PIECE_SUM, block));
    if (!each.route.sums_from.empty()) {
      FetchSum(block);
      continue;
    }
    std::ranges::transform(each.own, each.sum.begin(),
                           [w = WeightOf(examples)](float each) { return w * each; });
    HandOn(block);
  }
}

void RelayCarrier::TakeOwn(uint32_t block) {
  Block& each = blocks_[block];
  const ElementRange range = layout().Range(block);
  const std::span<float> given = Of(block, given_->contribution);
  const std::span<float> mean = Of(block, mean_.span());
  each.own = given;
  const std::vector<AveragedElements> averaged = Within(averaged_, range);
  if (given_->examples > 0 && averaged.empty()) return;
  each.own = mean;
  // What was left out may not be finite.
  if (given_->examples == 0) {
    std::ranges::fill(mean, 0);
    return;
  }
  std::ranges::copy(given, mean.begin());
  const double batches = batches_.Of(given_->examples);
  for (const AveragedElements& elements : averaged) {
    const auto k = static_cast<float>(MovedShare(elements.momentum, batches));
    for (uint64_t i = elements.range.offset; i < elements.range.end(); ++i) {
      mean_.data()[i] = k * (given_->contribution[i] - given_->weights[i]);
    }
  }
}

void RelayCarrier::FetchSum(uint32_t block) {
  const Block& each = blocks_[block];
  steps_.CallBegins();
  peers_.Fetch(
      each.route.sums_from[each.added], NameOf(v1::PIECE_SUM, block), layout().Range(block).count,
      [this, block](const TransportReply& reply) { return AddSum(block, reply); },
      [this, block](const absl::Status& status) {
        OnSum(block, status);
        steps_.CallIsOver();
      });
}

// May run more than once for an answer, so it changes nothing that it reads.
absl::Status RelayCarrier::AddSum(uint32_t block, const TransportReply& reply) {
  Block& each = blocks_[block];
  each.fetched_examples = reply.version.examples();
  each.fetched_rates = reply.version.rates();
  // Without examples a worker has no rates.
  const bool both = each.examples > 0 && each.fetched_examples > 0;
  if (both && each.fetched_rates != each.rates_code) return OtherRates(block);
  if (each.added > 0) {
    each.fetched.resize(reply.payload.size());
    reply.payload.CopyTo(each.fetched);
    return absl::OkStatus();
  }
  AddPayloads(FloatPayload::Of(each.own), WeightOf(given_->examples), reply.payload, 1, each.sum);
  return absl::OkStatus();
}

absl::Status RelayCarrier::OtherRates(uint32_t block) const {
  const Block& each = blocks_[block];
  return absl::InvalidArgumentError(absl::StrCat(
      "workers ", rank_, " and ", each.route.sums_from[each.added],
      " have different learning rates at clock ", clock(),
      "; in sync mode all workers must have the same rates (see Schedulers in docs/python.md)"));
}

void RelayCarrier::OnSum(uint32_t block, const absl::Status& status) {
  if (absl::IsOutOfRange(status)) return PullWeights(block);
  if (!status.ok()) return steps_.Fail(status);
  Block& each = blocks_[block];
  if (each.added > 0) {
    for (size_t i = 0; i < each.sum.size(); ++i) each.sum[i] += each.fetched[i];
  }
  if (each.examples == 0) each.rates_code = each.fetched_rates;
  each.examples += each.fetched_examples;
  ++each.added;
  each.added < each.route.sums_from.size() ? FetchSum(block) : HandOn(block);
}

void RelayCarrier::HandOn(uint32_t block) {
  const Block& each = blocks_[block];
  if (each.route.weights_from) {
    outbox_.Publish(NameOf(v1::PIECE_SUM, block), each.examples, each.rates_code);
    return FetchWeights(block);
  }
  const auto rates = RatesOfSum(block);
  if (!rates.ok()) return steps_.Fail(rates.status());
  MakeMean(block);
  steps_.CallBegins();
  client_.PushPullOfAll(clock(), each.examples, mean_.span(), given_->weights, {block, 1}, *rates,
                        [this, block](const absl::Status& status) {
                          OnWeights(block, status);
                          steps_.CallIsOver();
                        });
}

absl::StatusOr<ContributionRates> RelayCarrier::RatesOfSum(uint32_t block) const {
  const Block& each = blocks_[block];
  if (given_->examples > 0 || each.examples == 0) return each.rates;
  if (auto rates = RatesOf(each.rates_code, trained_)) return *std::move(rates);
  return absl::UnimplementedError(absl::StrCat(
      "worker ", rank_, " has no batch at clock ", clock(),
      ", so it does not know the learning rates of the others, which differ from tensor to tensor; "
      "give each worker the same number of batches, or use topology.algorithm: direct"));
}

void RelayCarrier::MakeMean(uint32_t block) {
  const uint64_t examples = blocks_[block].examples;
  const float scale = examples == 0 ? 0 : 1 / WeightOf(examples);
  std::ranges::transform(blocks_[block].sum, Of(block, mean_.span()).begin(),
                         [scale](float each) { return scale * each; });
  if (examples == 0) return;
  const double batches = batches_.OfSum(clock(), examples);
  for (const AveragedElements& each : Within(averaged_, layout().Range(block))) {
    const auto k = static_cast<float>(MovedShare(each.momentum, batches));
    for (uint64_t i = each.range.offset; i < each.range.end(); ++i) {
      mean_.data()[i] = given_->weights[i] + mean_.data()[i] / k;
    }
  }
}

void RelayCarrier::FetchWeights(uint32_t block) {
  steps_.CallBegins();
  peers_.Fetch(
      *blocks_[block].route.weights_from, NameOf(v1::PIECE_WEIGHTS, block),
      layout().Range(block).count,
      [this, block](const TransportReply& reply) {
        reply.payload.CopyTo(Of(block, given_->weights));
        return absl::OkStatus();
      },
      [this, block](const absl::Status& status) {
        absl::IsOutOfRange(status) ? PullWeights(block) : OnWeights(block, status);
        steps_.CallIsOver();
      });
}

void RelayCarrier::PullWeights(uint32_t block) {
  steps_.CallBegins();
  client_.PullThen(clock() + 1, given_->weights, {block, 1},
                   [this, block](const absl::Status& status) {
                     OnWeights(block, status);
                     steps_.CallIsOver();
                   });
}

void RelayCarrier::OnWeights(uint32_t block, const absl::Status& status) {
  if (!status.ok()) return steps_.Fail(status);
  if (blocks_[block].route.passes_weights_on) {
    const PieceName name = NameOf(v1::PIECE_WEIGHTS, block);
    std::ranges::copy(Of(block, given_->weights), outbox_.Prepare(name).begin());
    outbox_.Publish(name, 0, 0);
  }
  steps_.Done(block);
}

}  // namespace leeway
