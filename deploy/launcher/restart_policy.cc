#include "deploy/launcher/restart_policy.h"

#include <algorithm>

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

RestartPolicy::RestartPolicy(uint32_t servers, uint32_t workers, Options options)
    : options_(options), servers_(servers, 0), workers_(workers, 0) {}

RestartPolicy::Decision RestartPolicy::OnWorkerExit(uint32_t rank, const ExitStatus& exit) {
  if (exit.ok()) return {};
  const std::string name = absl::StrCat("worker ", rank);
  if (!IsCrash(exit)) return {.action = Action::kFail, .reason = Failure(name, exit)};
  Decision decision = OnCrash(name, "workers.max_restarts", options_.worker, exit, workers_[rank]);
  if (decision.action == Action::kFail && options_.without_worker) {
    absl::StrAppend(&decision.reason, "; the job goes on without it");
    decision.action = Action::kLeave;
  }
  return decision;
}

RestartPolicy::Decision RestartPolicy::OnServerExit(uint32_t index, const ExitStatus& exit) {
  if (exit.ok()) return {};
  // One that was not there at first.
  if (index >= servers_.size()) servers_.resize(index + 1, 0);
  const std::string name = absl::StrCat("server ", index);
  const bool crash = IsCrash(exit) && (exit.signaled || exit.code != kExitFailed);
  if (!crash) return {.action = Action::kFail, .reason = Failure(name, exit)};
  return OnCrash(name, "servers.max_restarts", options_.server, exit, servers_[index]);
}

RestartPolicy::Decision RestartPolicy::OnCrash(const std::string& name, const char* limit_name,
                                               uint32_t limit, const ExitStatus& exit,
                                               uint32_t& restarts) const {
  std::string reason = Failure(name, exit);
  if (restarts >= limit) {
    absl::StrAppend(&reason, " after ", restarts, " restarts (", limit_name, " allows no more)");
    return {.action = Action::kFail, .reason = std::move(reason)};
  }
  const Duration delay = FromSeconds(DelaySeconds(restarts++));
  absl::StrAppend(&reason, "; restart ", restarts, " of ", limit);
  return {.action = Action::kRestart, .delay = delay, .reason = std::move(reason)};
}

}  // namespace leeway
