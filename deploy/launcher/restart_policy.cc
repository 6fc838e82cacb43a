#include "deploy/launcher/restart_policy.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace leeway {
namespace {

bool IsCrash(const ExitStatus& exit) {
  return exit.signaled ||
         (exit.code != kExitDone && exit.code != kExitUsage && exit.code != kExitPermanent);
}

std::string Failure(absl::string_view name, const ExitStatus& exit) {
  if (IsCrash(exit)) return absl::StrCat(name, " crashed with ", exit.ToString());
  return absl::StrCat(
      name, exit.code == kExitUsage ? " refused its arguments or job" : " failed for good", " (",
      exit.ToString(), ")");
}

// Seconds before restart number `restart` (from 0).
double DelaySeconds(uint32_t restart) {
  return restart == 0 ? 0 : static_cast<double>(1u << std::min(restart - 1, 5u));
}

}  // namespace

RestartPolicy::RestartPolicy(uint32_t workers, uint32_t max_restarts)
    : max_restarts_(max_restarts), restarts_(workers, 0) {}

RestartPolicy::Decision RestartPolicy::OnWorkerExit(uint32_t rank, const ExitStatus& exit) {
  if (exit.ok()) return {};
  std::string reason = Failure(absl::StrCat("worker ", rank), exit);
  if (!IsCrash(exit)) return {.action = Action::kFail, .reason = std::move(reason)};
  if (restarts_[rank] >= max_restarts_) {
    absl::StrAppend(&reason, " after ", restarts_[rank],
                    " restarts (workers.max_restarts allows no more)");
    return {.action = Action::kFail, .reason = std::move(reason)};
  }
  const Duration delay = FromSeconds(DelaySeconds(restarts_[rank]++));
  absl::StrAppend(&reason, "; restart ", restarts_[rank], " of ", max_restarts_);
  return {.action = Action::kRestart, .delay = delay, .reason = std::move(reason)};
}

RestartPolicy::Decision RestartPolicy::OnServerExit(uint32_t index, const ExitStatus& exit) const {
  if (exit.ok()) return {};
  return {.action = Action::kFail, .reason = Failure(absl::StrCat("server ", index), exit)};
}

uint32_t RestartPolicy::total_restarts() const {
  return std::accumulate(restarts_.begin(), restarts_.end(), uint32_t{0});
}

}  // namespace leeway
