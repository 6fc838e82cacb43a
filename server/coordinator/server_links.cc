#include "server/coordinator/server_links.h"

#include <cstddef>
#include <utility>

#include <spdlog/spdlog.h>

#include "common/rpc/channel.h"

namespace leeway {
namespace {

using Control = ControlLink::Stub;

// The time limit of one SetLive call.
constexpr Duration kSetLiveAttempt = std::chrono::seconds(5);
// The time limit of one CommitSet call. It is longer because the server makes the updates of the
// clock before it answers.
constexpr Duration kCommitAttempt = std::chrono::seconds(60);
// The time during which the Shutdown call is retried if a server does not answer.
constexpr Duration kShutdownAgain = std::chrono::seconds(1);

}  // namespace

ServerLinks::ServerLinks(uint64_t job, uint32_t most, std::function<Time()> now,
                         const TransportSecurity& security,
                         std::function<void(const CommandAnswer&)> answer)
    : job_(job),
      now_(std::move(now)),
      security_(security),
      answer_(std::move(answer)),
      links_(most),
      watches_(most) {}

void ServerLinks::Close() {
  watches_.clear();
  links_.clear();
}

void ServerLinks::Do(const ConnectServer& command) {
  links_[command.server] =
      std::make_unique<ControlLink>(MakeChannel(command.address, security_, Callee::kHolder), now_);
  Unwatch(command.server);
  if (command.server > 0) Watch(command);
}

void ServerLinks::Do(const DisconnectServer& command) {
  links_[command.server].reset();
  Unwatch(command.server);
}

void ServerLinks::Watch(const ConnectServer& command) {
  watches_[command.server] = std::make_unique<ServerWatch>(
      command.address, [this, server = command.server, nonce = command.nonce] {
        answer_(ServerGone{server, nonce});
      });
}

void ServerLinks::Unwatch(uint32_t server) {
  // A stopped watch may still be looking up a name. It is kept until it is over, so that nobody has
  // to wait for it.
  std::erase_if(stopped_watches_, [](const auto& watch) { return watch->over(); });
  if (!watches_[server]) return;
  watches_[server]->Stop();
  stopped_watches_.push_back(std::move(watches_[server]));
}

void ServerLinks::Do(const ConfigureServer& command) {
  if (!links_[command.server]) return;
  links_[command.server]->Call(&Control::Configure, command.request, {.deadline = command.deadline},
                               [this, server = command.server, round = command.round](
                                   const absl::Status& status, const v1::ConfigureReply&) {
                                 answer_(ConfigureDone{server, round, status});
                               });
}

void ServerLinks::Do(const SetLive& command) {
  v1::SetLiveRequest request;
  request.set_job(job_);
  request.set_rank(command.rank);
  request.set_live(command.live);
  for (size_t server = 0; server < links_.size(); ++server) {
    if (!links_[server]) continue;
    links_[server]->Call(
        &Control::SetLive, request, {.deadline = Time::max(), .attempt = kSetLiveAttempt},
        [server, rank = command.rank](const absl::Status& status, const v1::SetLiveReply&) {
          if (status.ok()) return;
          spdlog::warn("cannot tell server {} about worker {}: {}", server, rank,
                       status.ToString());
        });
  }
}

void ServerLinks::Do(const CommitSet& command) {
  v1::CommitSetRequest request;
  request.set_job(job_);
  request.set_generation(command.generation);
  request.set_clock(command.clock);
  request.mutable_ranks()->Add(command.ranks.begin(), command.ranks.end());
  for (size_t server = 0; server < links_.size(); ++server) {
    if (!links_[server]) continue;
    links_[server]->Call(
        &Control::CommitSet, request, {.deadline = Time::max(), .attempt = kCommitAttempt},
        [server, clock = command.clock](const absl::Status& status, const v1::CommitSetReply&) {
          if (status.ok()) return;
          spdlog::warn("cannot tell server {} which contributions make clock {}: {}", server, clock,
                       status.ToString());
        });
  }
}

void ServerLinks::Do(const SaveAll& command) {
  v1::SaveRequest request;
  request.set_job(job_);
  request.set_clock(command.clock);
  request.set_generation(command.generation);
  for (uint32_t shard = 0; shard < command.owners.size(); ++shard) {
    if (!links_[command.owners[shard]]) continue;
    const auto done = [this, shard, round = command.round, clock = command.clock](
                          const absl::Status& status, const v1::SavedShard& file) {
      absl::StatusOr<v1::SavedShard> saved = file;
      if (!status.ok()) saved = status;
      answer_(SaveDone{shard, round, clock, saved});
    };
    request.set_shard(shard);
    links_[command.owners[shard]]->Call(&Control::Save, request, {.deadline = command.deadline},
                                        done);
  }
}

void ServerLinks::Do(const ShutdownServers& command) {
  v1::ShutdownRequest request;
  request.set_job(job_);
  request.set_outcome(command.outcome);
  for (uint32_t server = 0; server < links_.size(); ++server) {
    if (!links_[server]) continue;
    // A server that cannot be reached for kShutdownAgain counts as gone, because it may exit before
    // it answers.
    links_[server]->Call(&Control::Shutdown, request,
                         {.deadline = now_() + command.limit, .again = kShutdownAgain},
                         [this, server](const absl::Status&, const v1::ShutdownReply&) {
                           answer_(ShutdownDone{server});
                         });
  }
}

}  // namespace leeway
