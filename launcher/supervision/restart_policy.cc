#include "launcher/supervision/restart_policy.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/counted.h"

namespace leeway {
namespace {

// Returns whether the process ended without a fault.
bool IsDone(const ExitStatus& exit) {
  return !exit.signaled && (exit.code == kExitDone || exit.code == kExitStopped);
}

bool IsReplaced(const ExitStatus& exit) { return !exit.signaled && exit.code == kExitReplaced; }

// Returns whether a restart would not help.
bool IsFinal(const ExitStatus& exit) {
  return !exit.signaled && (exit.code == kExitUsage || exit.code == kExitPermanent);
}

std::string Failure(const std::string& name, const ExitStatus& exit) {
  return absl::StrCat(
      name, exit.code == kExitUsage ? " refused its arguments or job" : " failed for good", " (",
      exit.ToString(), ")");
}

// Returns the delay before the next restart, after `restarts` restarts within the window.
double DelaySeconds(size_t restarts) {
  return restarts == 0 ? 0 : static_cast<double>(1u << std::min<size_t>(restarts - 1, 5));
}

}  // namespace

RestartPolicy::RestartPolicy(uint32_t servers, uint32_t workers, Options options)
    : options_(options), servers_(servers), workers_(workers) {}

RestartPolicy::Decision RestartPolicy::OnWorkerExit(uint32_t rank, const ExitStatus& exit,
                                                    Time now) {
  const std::string name = absl::StrCat("worker ", rank);
  Decision decision =
      Decide(name, exit, "workers.max_restarts", options_.worker, workers_[rank], now);
  if (decision.action == Action::kFail && options_.without_worker && !IsFinal(exit)) {
    absl::StrAppend(&decision.reason, "; the job goes on without it");
    decision.action = Action::kLeave;
  }
  return decision;
}

RestartPolicy::Decision RestartPolicy::OnServerExit(uint32_t index, const ExitStatus& exit,
                                                    Time now) {
  // Make an entry for a server that was added while the job ran.
  if (index >= servers_.size()) servers_.resize(index + 1);
  const std::string name = absl::StrCat("server ", index);
  return Decide(name, exit, "servers.max_restarts", options_.server, servers_[index], now);
}

RestartPolicy::Decision RestartPolicy::Decide(const std::string& name, const ExitStatus& exit,
                                              const char* limit_name, uint32_t limit,
                                              Restarts& restarts, Time now) const {
  if (IsDone(exit)) return {};
  if (IsReplaced(exit)) {
    return {.action = Action::kReplaced,
            .reason = absl::StrCat(name,
                                   ": another process has taken its place; the job goes on with "
                                   "that process, which is not restarted here")};
  }
  if (IsFinal(exit)) return {.action = Action::kFail, .reason = Failure(name, exit)};
  return OnCrash(absl::StrCat(name, " crashed with ", exit.ToString()), limit_name, limit, restarts,
                 now);
}

RestartPolicy::Decision RestartPolicy::OnCrash(std::string reason, const char* limit_name,
                                               uint32_t limit, Restarts& restarts, Time now) const {
  auto& recent = restarts.recent;
  while (!recent.empty() && now - recent.front() >= options_.window) recent.pop_front();
  const double window = Seconds(options_.window);
  if (recent.size() >= limit) {
    absl::StrAppend(&reason, " after ", Counted(recent.size(), "restart"), " within ", window,
                    " s (", limit_name, " allows no more)");
    return {.action = Action::kFail, .reason = std::move(reason)};
  }
  const Duration delay = FromSeconds(DelaySeconds(recent.size()));
  recent.push_back(now);
  ++restarts.total;
  absl::StrAppend(&reason, "; restart ", recent.size(), " of ", limit, " within ", window, " s");
  return {.action = Action::kRestart, .delay = delay, .reason = std::move(reason)};
}

std::vector<uint32_t> RestartPolicy::Totals(const std::vector<Restarts>& restarts) {
  std::vector<uint32_t> totals;
  for (const Restarts& each : restarts) totals.push_back(each.total);
  return totals;
}

}  // namespace leeway
