// What servers say to a simulated coordinator.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/protocol.h"
#include "tests/server/coordinator/core/scenario.h"
#include "tests/sim/whole_control.h"

namespace leeway::sim {
namespace {

v1::SavedShard PartOf(uint32_t shard, uint64_t hash) {
  v1::SavedShard part = TestFile(absl::StrCat("shard-", shard));
  // The hash as a number of a digest's length, which can be read back.
  part.set_sha256(absl::StrFormat("%064d", hash));
  return part;
}

// Fills in the fields that identify a shard, at a clock.
template <typename Request>
Request OfShard(const Message& message) {
  Request request;
  request.set_job(kJob);
  request.set_index(message.block);
  request.set_clock(message.clock);
  request.set_generation(message.generation);
  return request;
}

}  // namespace

void WholeControl::FromServer(Context& context, const Message& message, Time now) {
  switch (message.kind) {
    case Kind::kServerHeartbeat:
      return ServerHeartbeat(context, message, now);
    case Kind::kServerRegister:
      return ServerRegister(context, message, now);
    case Kind::kShardSaved:
      return ShardSaved(context, message, now);
    case Kind::kHeld:
      return Held(context, message, now);
    case Kind::kCommandDone:
      return CommandDone(context, message, now);
    case Kind::kGone:
      return Gone(context, message, now);
    default:
      return;
  }
}

void WholeControl::ServerHeartbeat(Context& context, const Message& message, Time now) {
  v1::ServerHeartbeatRequest request;
  request.set_job(kJob);
  request.set_index(message.from - kServer0);
  request.set_nonce(message.boot + 1);
  request.set_generation(message.flag ? message.generation : 0);
  for (uint32_t shard = 0; shard < context.shape.servers; ++shard) {
    if (message.version.clocks[shard] == 0) continue;
    request.add_synced()->set_shard(shard);
    request.mutable_synced()->rbegin()->set_since_epoch(message.version.clocks[shard]);
  }
  speaker_ = message.boot;
  heard_[message.from - kServer0] = now;
  const auto heard = core_->ServerHeartbeat(request, now);
  // The job goes on without a server that was lost, and the server ends.
  const bool heeded =
      absl::IsFailedPrecondition(heard.status()) || absl::IsAlreadyExists(heard.status());
  if (!heard.ok() && !heeded) return;
  Message reply = ReplyTo(message, heard.status().code());
  if (heard.ok()) reply.clock = heard->epoch();
  context.Send(reply);
}

void WholeControl::ServerRegister(Context& context, const Message& message, Time now) {
  // The message is for a coordinator that has died, and its connections with it.
  if (message.life != context.counts.coordinator_kills) return;
  const uint32_t index = message.from - kServer0;
  v1::RegisterServerRequest request;
  *request.mutable_build() = ThisBuild();
  request.set_index(index);
  request.set_address(absl::StrCat("server", index, ":1"));
  request.set_nonce(message.boot + 1);
  if (message.flag) request.set_held_generation(message.generation);
  speaker_ = message.boot;
  const absl::Status registered = core_->RegisterServer(request, now).status();
  context.Send(ReplyTo(message, registered.code()));
}

void WholeControl::ShardSaved(Context& context, const Message& message, Time now) {
  auto request = OfShard<v1::ShardSavedRequest>(message);
  *request.mutable_shard() = PartOf(message.block, message.value);
  const absl::Status heard = core_->ShardSaved(request, now);
  const bool older = message.generation < context.generation;
  // The cut has failed, because an earlier owner has written a different part.
  const bool two = context.shape.moves() && absl::IsFailedPrecondition(heard);
  if (heard.ok() || older || two) {
    return context.Send(ReplyTo(message, absl::StatusCode::kOk));
  }
  // The restarted coordinator does not know yet which job the part belongs to.
  if (absl::IsInvalidArgument(heard) && boot_ > 0) return;
  context.Violate("a server's part of a cut is welcome", [&] { return heard.ToString(); });
}

void WholeControl::Held(Context& context, const Message& message, Time now) {
  auto request = OfShard<v1::ContributionsHeldRequest>(message);
  request.set_again(message.flag);
  request.set_epoch(message.stop_at);
  for (uint32_t r = 0; r < context.shape.workers; ++r) {
    if (message.value >> r & 1) request.add_ranks(r);
    if (message.value >> (kRefusedShift + r) & 1) request.add_refused(r);
  }
  context.Send(ReplyTo(message, core_->ContributionsHeld(request, now).code()));
}

void WholeControl::BelieveSilence(Context& context) {
  const Time now = context.LocalTime(kCoordinator);
  for (uint32_t index = 1; index < context.shape.servers; ++index) {
    if (heard_[index] == Time() || now - heard_[index] < std::chrono::microseconds(kLease))
      continue;
    v1::RegisterServerRequest request;
    *request.mutable_build() = ThisBuild();
    request.set_index(index);
    request.set_address(absl::StrCat("server", index, ":1"));
    request.set_nonce(uint64_t{1} << 40);
    core_->RegisterServer(request, now).IgnoreError();
  }
}

// Like server_watch.h; the watching connections end with the coordinator.
void WholeControl::Gone(Context& context, const Message& message, Time now) {
  if (message.life != context.counts.coordinator_kills) return;
  const uint32_t index = message.from - kServer0;
  const auto lost = [&] {
    const v1::JobStatus status = core_->Status(now);
    return std::any_of(status.servers().begin(), status.servers().end(), [&](const auto& server) {
      return server.index() == index && server.state() == "lost";
    });
  };
  const bool before = lost();
  core_->Answered(ServerGone{index, message.boot + 1}, now);
  context.counts.gone += !before && lost() ? 1 : 0;
}

void WholeControl::CommandDone(Context& context, const Message& message, Time now) {
  if (!Done(context, message)) return;
  const uint32_t index = message.from - kServer0;
  if (message.order == Order::kConfigure) {
    const absl::Status made = message.code == absl::StatusCode::kOk
                                  ? absl::OkStatus()
                                  : absl::Status(message.code, "past");
    core_->Answered(ConfigureDone{index, message.clock, made}, now);
  }
  if (message.order == Order::kShutdown) core_->Answered(ShutdownDone{index}, now);
  if (message.order != Order::kSave) return;
  absl::StatusOr<v1::SavedShard> part = PartOf(message.rank, message.value);
  if (message.code != absl::StatusCode::kOk) part = absl::Status(message.code, "torn");
  core_->Answered(SaveDone{message.rank, message.incarnation, message.clock, part}, now);
}

void WholeControl::ManifestDone(Context& context, const Message& message, Time now) {
  if (message.boot != boot_) return;
  if (message.clock > manifest_.clock()) manifest_ = writing_[message.clock];
  for (int i = 0; i < manifest_.shards_size(); ++i) {
    context.cut_hashes[{manifest_.clock(), static_cast<uint32_t>(i)}] =
        std::stoull(manifest_.shards(i).sha256());
  }
  core_->Answered(ManifestWritten{message.clock, absl::OkStatus()}, now);
}

}  // namespace leeway::sim
