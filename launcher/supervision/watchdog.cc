#include "launcher/supervision/watchdog.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace leeway {
namespace {

// The least patience. On a busy machine a process may stall for longer than a lease. A lost process
// that comes back loses less work than a killed process.
constexpr Duration kPatienceMin = std::chrono::seconds(5);

}  // namespace

Watchdog::Watchdog(Options options) : options_(options) {}

Duration Watchdog::patience() const { return std::max(options_.lease, kPatienceMin); }

void Watchdog::Advance(Time now) {
  if (began_) awake_ += std::clamp(now - last_, Duration::zero(), options_.between_calls);
  began_ = true;
  last_ = now;
}

std::vector<Watchdog::Life> Watchdog::Lost(const v1::JobStatus& status) {
  std::vector<Life> lost;
  for (const v1::WorkerStatus& worker : status.workers()) {
    const auto pid = static_cast<pid_t>(worker.pid());
    if (pid != 0 && worker.state() == "lost") lost.push_back({false, worker.rank(), pid});
  }
  for (const v1::ServerStatus& server : status.servers()) {
    pid_t& known = servers_[server.index()];
    if (server.pid() != 0) known = static_cast<pid_t>(server.pid());
    const bool absent = server.state() == "lost" || server.state() == "waiting";
    if (known != 0 && absent) lost.push_back({true, server.index(), known});
  }
  return lost;
}

void Watchdog::CoordinatorBegins(pid_t pid, Time now) {
  Advance(now);
  coordinator_ = pid;
  answered_ = false;
  heard_ = awake_;
}

std::vector<Watchdog::Hung> Watchdog::Answered(const v1::JobStatus& status, Time now) {
  Advance(now);
  answered_ = true;
  heard_ = awake_;
  const std::vector<Life> lost = Lost(status);
  std::erase_if(lost_, [&](const auto& each) {
    return std::find(lost.begin(), lost.end(), each.first) == lost.end();
  });
  std::vector<Hung> hung;
  for (const Life& life : lost) {
    const auto [entry, fresh] = lost_.try_emplace(life, awake_);
    if (awake_ - entry->second < patience()) continue;
    hung.push_back({life, absl::StrFormat("the coordinator has not heard it for %.0f s",
                                          Seconds(options_.lease + awake_ - entry->second))});
    // The caller kills the process now. If the process survives, the watchdog finds it again later.
    entry->second = awake_;
  }
  return hung;
}

std::vector<Watchdog::Hung> Watchdog::Check(Time now) {
  Advance(now);
  // A server that loads a large model may take as long as the job waits for its start.
  const Duration allowed = answered_ ? 2 * patience() : options_.start;
  if (coordinator_ == 0 || awake_ - heard_ < allowed) return {};
  const pid_t pid = coordinator_;
  coordinator_ = 0;
  return {{{true, 0, pid},
           absl::StrFormat("it has not answered for %.0f s", Seconds(awake_ - heard_))}};
}

}  // namespace leeway
