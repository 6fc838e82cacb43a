#include "server/coordinator/core/loss_scales.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/coordinator/core/job_model.h"

namespace leeway {
namespace {

using Entries = google::protobuf::RepeatedPtrField<v1::LossScale>;

// Returns true if the job's workers report their loss scales. With other exchanges the workers keep
// the scale in their own state.
bool ReportsLossScales(const v1::TrainingJob& job) {
  return ScalesLoss(job) && job.exchange().has_gradient();
}

// Returns what is wrong with the entries of a rank in a job whose clocks go up to `largest`; empty
// if nothing is wrong.
std::string WrongWith(const Entries& entries, uint64_t largest) {
  if (entries.size() > static_cast<int>(LossScaleHistory::kEntriesMax)) {
    return absl::StrCat("has ", entries.size(), " entries, must have at most ",
                        LossScaleHistory::kEntriesMax);
  }
  uint64_t before = 0;
  for (const v1::LossScale& entry : entries) {
    if (entry.log2() > kLossScaleMost) {
      return absl::StrCat("has log2 ", entry.log2(), ", must be at most ", kLossScaleMost);
    }
    // An entry is valid from the clock after the overflow on.
    if (entry.clock() <= before || entry.clock() - 1 > largest) {
      return absl::StrCat("has clock ", entry.clock(), ", but clocks must rise and be from 1 to ",
                          largest, " + 1");
    }
    before = entry.clock();
  }
  return "";
}

bool AddAll(const Entries& entries, LossScaleHistory& history) {
  bool news = false;
  for (const v1::LossScale& entry : entries) news |= history.Add({entry.clock(), entry.log2()});
  return news;
}

void Fill(const LossScaleHistory& history, Entries& entries) {
  for (const LossScaleHistory::Entry& entry : history.entries()) {
    v1::LossScale& scale = *entries.Add();
    scale.set_clock(entry.clock);
    scale.set_log2(entry.log2);
  }
}

std::vector<LossScaleHistory> HistoriesOf(
    const google::protobuf::RepeatedPtrField<v1::LossScales>& all, size_t ranks) {
  std::vector<LossScaleHistory> histories(ranks);
  const size_t known = std::min<size_t>(ranks, all.size());
  for (size_t rank = 0; rank < known; ++rank) {
    const Entries& entries = all.Get(static_cast<int>(rank)).scales();
    if (WrongWith(entries, kClockMax).empty()) AddAll(entries, histories[rank]);
  }
  return histories;
}

}  // namespace

LossScales::LossScales(const CoordinatorOptions& options) {
  if (!ReportsLossScales(options.job)) return;
  reported_ = durable_ =
      HistoriesOf({options.ranks.loss_scales.begin(), options.ranks.loss_scales.end()},
                  options.job.workers().count());
}

absl::Status LossScales::Check(const v1::HeartbeatRequest& request, uint64_t largest_clock) const {
  if (request.loss_scales().empty()) return absl::OkStatus();
  const std::string who = absl::StrCat("the heartbeat of worker ", request.rank(), ": loss_scales");
  if (reported_.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        who,
        ": only workers with workers.precision fp16 and a gradient exchange report loss scales"));
  }
  const std::string wrong = WrongWith(request.loss_scales(), largest_clock);
  if (wrong.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(who, " ", wrong));
}

bool LossScales::Take(const v1::HeartbeatRequest& request) {
  return !request.loss_scales().empty() && AddAll(request.loss_scales(), reported_[request.rank()]);
}

void LossScales::Written(const v1::CoordinatorRecord& record) {
  durable_ = HistoriesOf(record.loss_scales(), reported_.size());
}

bool LossScales::OnRecord(uint32_t rank) const {
  return rank >= reported_.size() || reported_[rank] == durable_[rank];
}

void LossScales::Fill(uint32_t rank, v1::RegisterWorkerReply& reply) const {
  if (rank < reported_.size()) leeway::Fill(reported_[rank], *reply.mutable_loss_scales());
}

void LossScales::Fill(v1::CoordinatorRecord& record) const {
  const bool any = std::any_of(reported_.begin(), reported_.end(),
                               [](const auto& history) { return !history.entries().empty(); });
  if (!any) return;
  for (const LossScaleHistory& history : reported_) {
    leeway::Fill(history, *record.add_loss_scales()->mutable_scales());
  }
}

}  // namespace leeway
