#include "client/calls/host_group.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "common/update/combine.h"
#include "common/wire/payload.h"

namespace leeway {
namespace {

constexpr Duration kMapAgainAfter = std::chrono::milliseconds(100);
// If the same memory cannot be mapped for longer than this, its owner is alive, and mapping is
// impossible here. The memory of a process that has just died cannot be mapped, either, but then
// the coordinator soon names the process's next life.
constexpr Duration kRefusedFor = std::chrono::seconds(5);
constexpr char kRemedy[] =
    "; set workers.per_host: separate, which needs no shared memory (docs/tuning.md)";

// The advice for values that no correct worker publishes. A worker publishes only finite values,
// and never more examples than it has.
constexpr char kDamaged[] =
    "; no worker publishes such a value, so the memory of that worker is damaged: restart that "
    "worker";

bool Same(const v1::MemoryOffer& a, const v1::MemoryOffer& b) {
  return a.nonce() == b.nonce() && a.pid() == b.pid() && a.fd() == b.fd() && a.bytes() == b.bytes();
}

}  // namespace

absl::StatusOr<std::unique_ptr<HostGroup>> HostGroup::Open(const Options& options,
                                                           const BlockLayout& layout,
                                                           ContributionMemory& memory) {
  const auto& members = options.members.members();
  if (members.empty()) return nullptr;
  const auto falls = [](const auto& a, const auto& b) { return a.rank() >= b.rank(); };
  const bool here = std::any_of(members.begin(), members.end(),
                                [&](const auto& each) { return each.rank() == options.rank; });
  if (!here || std::adjacent_find(members.begin(), members.end(), falls) != members.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the coordinator must list the workers of this host in rising order of rank, and worker ",
        options.rank, " must be one of them"));
  }
  if (members.size() == 1) return nullptr;
  std::unique_ptr<HostGroup> group(new HostGroup(options, layout, memory));
  if (!group->leads()) RETURN_IF_ERROR(memory.Begin(layout, options.generation));
  return group;
}

HostGroup::HostGroup(const Options& options, const BlockLayout& layout, ContributionMemory& memory)
    : rank_(options.rank),
      generation_(options.generation),
      averaged_(options.averaged),
      batches_(options.batches),
      layout_(layout),
      memory_(memory),
      wait_(FromSeconds(options.exchange_seconds), options.goes_on, options.now) {
  for (const v1::HostGroupMember& each : options.members.members()) {
    Member& member = members_.emplace_back();
    member.rank = each.rank();
    member.offer = each.contributions();
  }
  found_.resize(members_.size());
  if (leads()) sum_ = FloatBuffer(std::min(layout.block_elements(), layout.total()));
}

void HostGroup::TakeNewOffers() {
  const std::optional<v1::HostGroup> offers = wait_.End();
  if (!offers.has_value()) return;
  for (const v1::HostGroupMember& each : offers->members()) {
    const auto member = std::find_if(members_.begin(), members_.end(),
                                     [&](const Member& m) { return m.rank == each.rank(); });
    if (member == members_.end() || Same(member->offer, each.contributions())) continue;
    member->offer = each.contributions();
    member->mapped = false;
    member->refusal = absl::OkStatus();
    member->again = Time{};
  }
}

absl::Status HostGroup::Refresh() {
  TakeNewOffers();
  missing_.clear();
  for (Member& member : members_) {
    if (member.rank != rank_ && !member.mapped) RETURN_IF_ERROR(Map(member));
  }
  return absl::OkStatus();
}

absl::Status HostGroup::Map(Member& member) {
  const Time now = wait_.now();
  if (now < member.again) return absl::OkStatus();
  auto view = ContributionView::Map(member.offer, layout_);
  if (view.ok()) {
    member.view = *std::move(view);
    member.mapped = true;
    member.refusal = absl::OkStatus();
    return absl::OkStatus();
  }
  const std::string why =
      absl::StrCat("worker ", rank_, " cannot read the contributions of worker ", member.rank,
                   " of this host: ", view.status().message(), kRemedy);
  if (member.refusal.ok()) {
    spdlog::warn("{}", why);
    member.refused = now;
  }
  member.refusal = view.status();
  member.again = now + kMapAgainAfter;
  const bool gone = absl::IsNotFound(view.status());
  if (gone || now - member.refused < kRefusedFor) return absl::OkStatus();
  return absl::InvalidArgumentError(why);
}

void HostGroup::Miss(uint32_t rank) {
  const auto place = std::lower_bound(missing_.begin(), missing_.end(), rank);
  if (place == missing_.end() || *place != rank) missing_.insert(place, rank);
}

absl::StatusOr<HostGroup::Outcome> HostGroup::Look(uint64_t clock, uint32_t block) {
  Outcome outcome = Outcome::kCombined;
  for (size_t i = 0; i < members_.size(); ++i) {
    const Member& member = members_[i];
    if (member.rank == rank_) continue;
    ContributionView::Found& found = found_[i];
    found = member.view ? member.view->Look(generation_, clock, block) : ContributionView::Found();
    if (found.state == ContributionView::State::kPassed) return Outcome::kPassed;
    if (found.state == ContributionView::State::kMissing) {
      Miss(member.rank);
      outcome = Outcome::kMissing;
    }
    if (found.examples > kExamplesMax) {
      return absl::InvalidArgumentError(absl::StrCat(
          "worker ", rank_, ", block ", block, ", clock ", clock, ": the memory of worker ",
          member.rank, " of this host says ", found.examples, " examples", kDamaged));
    }
  }
  return outcome;
}

absl::StatusOr<HostGroup::Combined> HostGroup::Combine(uint64_t clock, uint32_t block,
                                                       uint64_t examples,
                                                       std::span<float> contribution,
                                                       std::span<const float> weights) {
  ASSIGN_OR_RETURN(const Outcome outcome, Look(clock, block));
  if (outcome != Outcome::kCombined) return Combined{outcome, 0};
  found_.front().examples = examples;
  if (!Sum(clock, block, contribution, weights)) return Combined();
  const ElementRange range = layout_.Range(block);
  if (FloatPayload::Of(sum_.span().first(range.count)).FirstNonFinite() != range.count) {
    return NotFinite(clock, block, contribution);
  }
  // The sum is copied last, because each step before may find that the sum is not valid.
  std::memcpy(contribution.data() + range.offset, sum_.data(), range.count * sizeof(float));
  return Combined{Outcome::kCombined, ExamplesOfAll()};
}

absl::Status HostGroup::NotFinite(uint64_t clock, uint32_t block,
                                  std::span<const float> contribution) const {
  const ElementRange range = layout_.Range(block);
  for (const Member& member : members_) {
    const std::span<const float> all = member.rank == rank_ ? contribution : member.view->values();
    const std::span<const float> values = all.subspan(range.offset, range.count);
    const size_t bad = FloatPayload::Of(values).FirstNonFinite();
    if (bad == values.size()) continue;
    return absl::InvalidArgumentError(absl::StrCat("worker ", rank_, ", block ", block, ", clock ",
                                                   clock, ": value ", bad,
                                                   " of the contribution of worker ", member.rank,
                                                   " of this host is ", values[bad], kDamaged));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("worker ", rank_, ", block ", block, ", clock ", clock,
                   ": the sum of this host's contributions overflows; training has diverged: try "
                   "a smaller learning rate"));
}

uint64_t HostGroup::ExamplesOfAll() const {
  uint64_t examples = 0;
  for (const ContributionView::Found& found : found_) examples += found.examples;
  return examples;
}

bool HostGroup::Sum(uint64_t clock, uint32_t block, std::span<const float> contribution,
                    std::span<const float> weights) {
  const ElementRange range = layout_.Range(block);
  std::vector<uint64_t> examples;
  for (const ContributionView::Found& found : found_) examples.push_back(found.examples);
  Sum(range, range, MeanCoefficients(examples), contribution);
  SumAveraged(clock, range, contribution, weights);
  bool stands = true;
  for (size_t i = 0; i < members_.size(); ++i) {
    const Member& member = members_[i];
    if (member.rank == rank_ || member.view->Stands(found_[i], clock, block)) continue;
    Miss(member.rank);
    stands = false;
  }
  return stands;
}

void HostGroup::Sum(const ElementRange& block, const ElementRange& elements,
                    const std::vector<float>& coefficients, std::span<const float> contribution) {
  std::vector<FloatPayload> payloads;
  std::vector<const FloatPayload*> contributions;
  payloads.reserve(members_.size());
  for (const Member& member : members_) {
    const std::span<const float> values =
        member.rank == rank_ ? contribution : member.view->values();
    contributions.push_back(
        &payloads.emplace_back(FloatPayload::Of(values.subspan(elements.offset, elements.count))));
  }
  float* const out = sum_.data() + (elements.offset - block.offset);
  Combiner combiner(contributions, coefficients);
  for (size_t offset = 0, run = 0, count; offset < elements.count; offset += count) {
    if (offset == run) run += combiner.Run(offset, elements.count - offset);
    count = std::min(Combiner::kMaxTile, run - offset);
    std::memcpy(out + offset, combiner.Tile(offset, count), count * sizeof(float));
  }
}

void HostGroup::SumAveraged(uint64_t clock, const ElementRange& block,
                            std::span<const float> contribution, std::span<const float> weights) {
  const uint64_t all = ExamplesOfAll();
  if (all == 0) return;
  const double batches = batches_.OfSum(clock, all);
  const bool alike = std::all_of(found_.begin(), found_.end(), [&](const auto& found) {
    return found.examples == 0 || batches_.Of(found.examples) == batches;
  });
  if (alike) return;
  for (const AveragedElements& averaged : Within(averaged_, block)) {
    const ElementRange& range = averaged.range;
    const double k = MovedShare(averaged.momentum, batches);
    std::vector<float> coefficients;
    double rest = 1;
    for (const ContributionView::Found& found : found_) {
      const double share = static_cast<double>(found.examples) / static_cast<double>(all);
      const double moved = MovedShare(averaged.momentum, batches_.Of(found.examples));
      coefficients.push_back(static_cast<float>(share * moved / k));
      rest -= share * moved / k;
    }
    Sum(block, range, coefficients, contribution);
    for (uint64_t i = range.offset; i < range.end(); ++i) {
      sum_.data()[i - block.offset] += static_cast<float>(rest) * weights[i];
    }
  }
}

std::string HostGroup::Missing() const {
  std::string text = absl::StrCat("waiting for ", missing_.size() == 1 ? "worker " : "workers ",
                                  absl::StrJoin(missing_, ", "), " of this host");
  for (const Member& member : members_) {
    if (member.refusal.ok()) continue;
    absl::StrAppend(&text, "; worker ", member.rank, ": ", member.refusal.message(), kRemedy);
  }
  return text;
}

absl::Status HostGroup::Pause(uint64_t clock, Time began) {
  return wait_.Pause(absl::StrCat("worker ", rank_, ", clock ", clock), Missing(), began);
}

}  // namespace leeway
