// Makes the messages that `leeway status` and the live view show.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/coordinator/core/coordinator_core.h"
#include "server/coordinator/core/phrases.h"

namespace leeway {

namespace {

// Returns a message about a server that refuses contributions because its memory budget is used up;
// empty if there is no such server.
std::string LoadMessage(const ServerTable& servers, uint64_t held_bytes) {
  for (uint32_t i = 0; i < servers.size(); ++i) {
    const v1::ServerLoad& load = servers[i].load;
    if (load.refused_contributions() == 0 || load.held_bytes() <= held_bytes) continue;
    return absl::StrCat("server ", i, " has no memory left for contributions (limits.held_bytes): ",
                        load.refused_contributions(), " refused");
  }
  return "";
}

}  // namespace

std::string CoordinatorCore::Missing(Time now) const {
  const bool going_back = life_.phase() == Phase::kGoingBack;
  const Time since = going_back ? life_.going_back_since() : life_.created();
  const std::string clock =
      absl::StrFormat(" (%.0f s of %.0f s)", Seconds(now - since), Seconds(facts().start_limit()));
  std::string workers;
  // Reads only kNamedMax ranks, because ten thousand registering workers ask this ten thousand
  // times.
  if (!going_back) {
    workers =
        ListOf("worker", workers_.ranks().In({RankState::kWaiting, RankState::kLost}, kNamedMax),
               workers_.Missing());
  }
  std::vector<uint32_t> servers = fleet_.table().Missing();
  const std::vector<uint32_t> holders = HoldersMissing(now);
  servers.insert(servers.end(), holders.begin(), holders.end());
  // A worker that is missing brings its server.
  if (!workers.empty() && WorkersHoldBlocks(facts().job())) {
    std::erase_if(servers, [](uint32_t server) { return server > 0; });
  }
  const std::string who = And(workers, ListOfServers(facts().job(), servers));
  if (!who.empty()) return absl::StrCat("waiting for ", who, " to register", clock);
  if (!model_.schema()) return absl::StrCat("waiting for a worker that brings the model", clock);
  if (going_back && cuts_.book().WritingAny()) {
    return absl::StrCat("waiting for the manifest of a checkpoint to be written", clock);
  }
  return absl::StrCat("waiting for ", ListOfServers(facts().job(), fleet_.table().Unready()),
                      " to get ready", clock);
}

std::string CoordinatorCore::StatusMessage(Time now) const {
  const Phase phase = life_.phase();
  if (phase == Phase::kStarting) return Missing(now);
  if (phase == Phase::kGoingBack) {
    return absl::StrCat(life_.going_back_why(), "; going back to clock ",
                        cuts_.newest().value_or(0), ", ", Missing(now));
  }
  if (phase == Phase::kSaving) {
    return absl::StrCat("writing the last checkpoint, at clock ", cuts_.last_clock());
  }
  if (phase != Phase::kRunning && (stop_.failed() || stop_.requested())) return stop_.Ending();
  const std::vector<uint32_t> lost = workers_.ranks().In({RankState::kLost});
  if (const std::string holder = LostHolder(now); !holder.empty()) return holder;
  if (lost.empty()) {
    const std::vector<uint32_t> draining = fleet_.table().Draining();
    const std::string leaving =
        draining.empty() ? "" : absl::StrCat("shards leave ", ListOf("server", draining));
    return And(
        And(And(And(leaving, shards_.ResizeMessage()), sets_.GraceMessage(workers_.live(), now)),
            leases_.LastBatchesMessage()),
        LoadMessage(fleet_.table(), facts().job().limits().held_bytes()));
  }
  return absl::StrFormat("%s lost %.0f s ago", ListOf("worker", lost),
                         Seconds(now - workers_.ranks()[lost.front()].since));
}

std::string CoordinatorCore::LostHolder(Time now) const {
  const ServerTable& servers = fleet_.table();
  for (uint32_t i = 0; i < servers.size(); ++i) {
    if (servers[i].state != ServerState::kLost || !shards_.places().Holds(i)) continue;
    return absl::StrFormat(
        "waiting for %s, whose blocks no other server has: silent for "
        "%.0f s of %.0f s",
        ServerName(facts().job(), i), Seconds(now - servers[i].seen),
        Seconds(facts().lease() + facts().start_limit()));
  }
  return "";
}

v1::JobStatus CoordinatorCore::Status(Time now) const {
  v1::JobStatus status;
  status.set_name(facts().job().metadata().name());
  status.set_job_id(facts().options().job_id);
  status.set_state(state());
  status.set_message(StatusMessage(now));
  workers_.Fill(now, status);
  fleet_.Fill(status);
  if (model_.length()) status.set_clocks(model_.length()->clocks());
  status.set_seconds(Seconds(now - life_.began().value_or(life_.created())));
  status.set_generation(life_.generation());
  leases_.Fill(status);
  if (shards_.resizing()) status.set_shards_to_move(shards_.places().ToMove());
  if (cuts_.newest()) status.set_checkpoint_clock(*cuts_.newest());
  return status;
}

}  // namespace leeway
