// The whole CoordinatorCore in a simulated world, with the service's part around it: commands go
// out over ordered links, manifests take their time.
#include <algorithm>
#include <array>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/protocol.h"
#include "server/coordinator/coordinator_core.h"
#include "tests/server/coordinator/scenario.h"
#include "tests/sim/control.h"

namespace leeway::sim {
namespace {

CoordinatorOptions OptionsOf(const Shape& shape) {
  static constexpr v1::ConsistencyMode kModes[] = {
      v1::CONSISTENCY_MODE_SYNC, v1::CONSISTENCY_MODE_BOUNDED, v1::CONSISTENCY_MODE_ASYNC};
  CoordinatorOptions options = TestOptions({.workers = shape.workers,
                                            .servers = shape.servers,
                                            .mode = kModes[static_cast<int>(shape.mode)],
                                            .clocks = shape.clocks,
                                            .cut_every = shape.cut_every,
                                            .elastic = shape.elastic});
  v1::Limits* limits = options.job.mutable_limits();
  options.job.mutable_servers()->set_replicas(shape.replicas);
  limits->set_lease_seconds(1e-6 * kLease);
  limits->set_start_seconds(0.1);
  limits->set_checkpoint_seconds(0.1);
  return options;
}

class WholeControl : public SimControl {
 public:
  explicit WholeControl(Context& context)
      : core_(std::in_place, OptionsOf(context.shape), context.LocalTime(kCoordinator)) {
    ScheduleTick(context);
    WriteFirst(0);
  }

  // As ServerProcess::GoOnAfter: with its record and the newest checkpoint.
  void Restart(Context& context) override {
    if (record_.outcome() != v1::JOB_STARTING) return;
    CoordinatorOptions options = OptionsOf(context.shape);
    const bool forget = context.bug == Bug::kForgetRecord;
    options.generation = forget ? 0 : record_.generation() + 1;
    options.incarnation_base = 1000 * ++boot_;
    options.before = record_;
    if (manifest_.clock() > 0) options.resumed = {manifest_, "checkpoint"};
    WriteFirst(options.generation);
    context.generation = std::max(context.generation, options.generation);
    core_.emplace(std::move(options), context.LocalTime(kCoordinator));
    for (uint32_t i = 0; i < context.shape.servers; ++i) Connect(i, UINT32_MAX);
  }

  void OnMessage(Context& context, const Message& message) override {
    const Time now = context.LocalTime(kCoordinator);
    switch (message.kind) {
      case Kind::kRegister:
        Register(context, message, now);
        break;
      case Kind::kHeartbeat:
        Heartbeat(context, message, now);
        break;
      case Kind::kStopAt:
        StopAt(context, message, now);
        break;
      case Kind::kLeave:
        Leave(context, message, now);
        break;
      case Kind::kState:
        context.Send(ReplyTo(
            message, core_
                         ->WorkerStateSaved({kJob, message.generation, message.rank,
                                             message.incarnation, message.clock},
                                            TestFile(absl::StrCat("worker-", message.rank)), now)
                         .code()));
        break;
      case Kind::kStopJob:
        // A stop of a job that has not begun is not on record: README.md, "Found".
        if (core_->state() == v1::JOB_STARTING && context.faults.coordinator_kills > 0 &&
            !context.shape.found) {
          return;
        }
        core_->StopJob("the schedule says so", now);
        break;
      case Kind::kManifest:
        if (message.boot != boot_) return;
        if (message.clock > manifest_.clock()) manifest_ = writing_[message.clock];
        for (int i = 0; i < manifest_.shards_size(); ++i) {
          context.cut_hashes[{manifest_.clock(), static_cast<uint32_t>(i)}] =
              std::stoull(manifest_.shards(i).sha256());
        }
        core_->ManifestWritten(message.clock, absl::OkStatus(), now);
        break;
      default:
        FromServer(context, message, now);
    }
    Carry(context);
  }

  void OnTick(Context& context) override {
    core_->Tick(context.LocalTime(kCoordinator));
    Carry(context);
    TickLinks(context);
    ScheduleTick(context);
  }

  bool over() const override { return core_->over(); }
  std::string Failure(Context& context) const override {
    if (core_->state() != v1::JOB_FAILED) return "";
    return core_->Status(context.LocalTime(kCoordinator)).message();
  }
  std::string Where(Context& context) const override {
    return core_->Status(context.LocalTime(kCoordinator)).ShortDebugString();
  }

 private:
  // As ServerProcess::StartCoordinator.
  void WriteFirst(uint64_t generation) {
    record_.Clear();
    record_.set_job_id(kJob);
    record_.set_generation(generation);
  }

  void Register(Context& context, const Message& message, Time now) {
    auto request = WorkerRequest(message.rank, message.life);
    request.set_steps_per_epoch(1);
    // Enough for a block on every server.
    *request.mutable_schema() = TestSchema(1000);
    const auto answer = core_->RegisterWorker(request, now);
    Message reply = ReplyTo(message, answer.status().code());
    // Claimed, if not answered yet.
    const v1::JobStatus status = core_->Status(now);
    for (const v1::WorkerStatus& each : status.workers()) {
      if (each.rank() != message.rank) continue;
      context.newest[message.rank] = std::max(context.newest[message.rank], each.incarnation());
    }
    reply.flag = record_.outcome() != v1::JOB_STARTING;
    if (answer.ok()) {
      reply.incarnation = answer->incarnation();
      reply.generation = answer->generation();
      reply.has_stop = answer->has_stop_at();
      reply.stop_at = answer->stop_at();
      PackServers(*answer, reply);
      reply.flag = answer->has_left_at();
      reply.clock = answer->left_at();
      CheckLife(context, message.rank, reply.incarnation, message.life);
    }
    context.Send(reply);
  }

  // Owners by shard, and the epoch; 0: nothing new.
  template <typename Reply>
  static void PackServers(const Reply& from, Message& reply) {
    reply.version = Version();
    if (from.servers_size() == 0) return;
    reply.version.number = from.epoch();
    for (int shard = 0; shard < from.servers_size(); ++shard) {
      // "server1:1"
      reply.version.clocks[shard] = static_cast<uint64_t>(from.servers(shard)[6] - '0');
    }
  }

  void Heartbeat(Context& context, const Message& message, Time now) {
    v1::HeartbeatRequest request;
    request.set_job(kJob);
    request.set_rank(message.rank);
    request.set_incarnation(message.incarnation);
    request.set_generation(message.generation);
    request.set_clock(message.clock);
    request.set_epoch(message.version.number);
    const auto answer = core_->Heartbeat(request, now);
    CheckFence(context, message, answer.ok());
    Message reply = ReplyTo(message, answer.status().code());
    if (answer.ok()) {
      PackServers(*answer, reply);
      reply.flag = answer->stop_requested();
      reply.has_stop = answer->has_stop_at();
      reply.stop_at = answer->stop_at();
    }
    context.Send(reply);
  }

  void StopAt(Context& context, const Message& message, Time now) {
    v1::StopAtRequest request;
    request.set_job(kJob);
    request.set_rank(message.rank);
    request.set_incarnation(message.incarnation);
    request.set_clock(message.clock);
    request.set_generation(message.generation);
    const auto answer = core_->StopAt(request, now);
    CheckFence(context, message, answer.ok());
    Message reply = ReplyTo(message, answer.status().code());
    reply.has_stop = answer.ok();
    if (answer.ok()) reply.stop_at = answer->stop_at();
    context.Send(reply);
  }

  void Leave(Context& context, const Message& message, Time now) {
    v1::LeaveRequest request;
    request.set_job(kJob);
    request.set_rank(message.rank);
    request.set_incarnation(message.incarnation);
    request.set_clock(message.clock);
    request.set_reason(message.flag ? v1::LEAVE_FINISHED : v1::LEAVE_STOPPED);
    request.set_generation(message.generation);
    request.set_waits(true);
    const auto left = core_->Leave(request, now);
    CheckFence(context, message, left.ok());
    Message reply = ReplyTo(message, left.status().code());
    reply.flag = left.ok() && left->sealed();
    context.Send(reply);
  }

  void CheckFence(Context& context, const Message& message, bool heard) {
    if (!heard || message.incarnation >= context.newest[message.rank]) return;
    context.Violate("nobody fenced is heard",
                    [&] { return absl::StrCat("the coordinator heard ", Describe(message)); });
  }

  void FromServer(Context& context, const Message& message, Time now) {
    const uint32_t index = message.from - kServer0;
    if (message.kind == Kind::kServerHeartbeat) {
      v1::ServerHeartbeatRequest request;
      request.set_job(kJob);
      request.set_index(index);
      request.set_nonce(message.boot + 1);
      request.set_generation(message.flag ? message.generation : 0);
      for (uint32_t shard = 0; shard < context.shape.servers; ++shard) {
        if (message.version.clocks[shard] == 0) continue;
        request.add_synced()->set_shard(shard);
        request.mutable_synced()->rbegin()->set_since_epoch(message.version.clocks[shard]);
      }
      const absl::Status heard = core_->ServerHeartbeat(request, now).status();
      if (absl::IsFailedPrecondition(heard)) Answer(context, message, heard.code(), 0);
      if (heard.ok()) Answer(context, message, heard.code(), 2);
    }
    if (message.kind == Kind::kServerRegister) {
      v1::RegisterServerRequest request;
      *request.mutable_build() = ThisBuild();
      request.set_index(index);
      request.set_address(absl::StrCat("server", index, ":1"));
      request.set_nonce(message.boot + 1);
      if (message.flag) request.set_held_generation(message.generation);
      boots_[index] = message.boot;
      Answer(context, message, core_->RegisterServer(request, now).status().code(), 0);
    }
    if (message.kind == Kind::kShardSaved) ShardSaved(context, message, message.block, now);
    if (message.kind == Kind::kCommandDone) CommandDone(context, message, index, now);
  }

  void ShardSaved(Context& context, const Message& message, uint32_t index, Time now) {
    v1::ShardSavedRequest request;
    request.set_job(kJob);
    request.set_index(index);
    request.set_clock(message.clock);
    request.set_generation(message.generation);
    *request.mutable_shard() = PartOf(index, message.value);
    const absl::Status heard = core_->ShardSaved(request, now);
    const bool older = message.generation < context.generation;
    // The cut has failed, for this is another part than its owner before had written.
    const bool two = context.shape.replicas > 1 && absl::IsFailedPrecondition(heard);
    if (heard.ok() || older || two) return Answer(context, message, absl::StatusCode::kOk, 1);
    // It is not known yet what job it is part of.
    if (absl::IsInvalidArgument(heard) && boot_ > 0) return;
    context.Violate("a server's part of a cut is welcome", [&] { return heard.ToString(); });
  }

  static v1::SavedShard PartOf(uint32_t shard, uint64_t hash) {
    v1::SavedShard part = TestFile(absl::StrCat("shard-", shard));
    part.set_sha256(absl::StrCat(hash));
    return part;
  }

  // attempt: 0 of a registration, 1 of a part of a cut, 2 of a heartbeat.
  void Answer(Context& context, const Message& message, absl::StatusCode code, uint16_t what) {
    Message reply = ReplyTo(message, code);
    reply.kind = Kind::kReply;
    reply.attempt = what;
    context.Send(reply);
  }

  void CommandDone(Context& context, const Message& message, uint32_t index, Time now) {
    if (!Done(context, message)) return;
    if (message.order == Order::kConfigure) {
      const absl::Status made = message.code == absl::StatusCode::kOk
                                    ? absl::OkStatus()
                                    : absl::Status(message.code, "past");
      core_->ConfigureDone(index, message.clock, made, now);
    }
    if (message.order == Order::kShutdown) core_->ShutdownDone(index, now);
    if (message.order != Order::kSave) return;
    absl::StatusOr<v1::SavedShard> part = PartOf(message.rank, message.value);
    if (message.code != absl::StatusCode::kOk) part = absl::Status(message.code, "torn");
    core_->SaveDone(message.rank, message.generation, message.clock, part, now);
  }

  // ---- what the core wants done
  void Carry(Context& context) {
    for (auto commands = core_->TakeCommands(); !commands.empty();
         commands = core_->TakeCommands()) {
      for (const Command& command : commands) {
        std::visit([&](const auto& each) { Do(context, each); }, command);
      }
    }
  }
  void Do(Context& context, const ConfigureServer& command) {
    // A process of before may still answer: only what it is told now counts.
    const std::string& folder = command.request.checkpoint();
    uint64_t clock = 0;
    if (!folder.empty())
      clock = std::stoull(folder.substr(folder.find_last_not_of("0123456789") + 1));
    Message give;
    give.order = Order::kConfigure;
    give.clock = command.round;
    give.generation = command.request.generation();
    give.stop_at = clock;
    give.flag = command.request.load();
    give.value = context.placements.size();
    context.placements.push_back(command.request.placement());
    Tell(context, command.server, give);
  }
  void Do(Context&, const ConnectServer& command) {
    Connect(command.server, boots_[command.server]);
  }
  // Durable at once.
  void Do(Context& context, const WriteRecord& command) {
    const v1::Placement before = record_.placement();
    record_ = command.record;
    // What it says of who holds what is that of the time before.
    const bool late = context.bug == Bug::kRecordLate && before.shards_size() > 0;
    if (late) *record_.mutable_placement() = std::exchange(last_placement_, record_.placement());
    if (!late) last_placement_ = record_.placement();
    if (record_.generation() > context.generation) ++context.counts.went_back;
    context.generation = std::max(context.generation, record_.generation());
    core_->RecordDone(absl::OkStatus(), context.LocalTime(kCoordinator));
  }
  void Do(Context& context, const SetLive& command) {
    TellLive(context, command.rank, command.live);
  }
  void Do(Context& context, const SaveAll& command) {
    for (uint32_t shard = 0; shard < command.owners.size(); ++shard) {
      Message give;
      give.order = Order::kSave;
      give.clock = command.clock;
      give.generation = command.generation;
      give.rank = static_cast<uint8_t>(shard);
      Tell(context, command.owners[shard], give);
    }
  }
  void Do(Context& context, const ShutdownServers&) {
    Message give;
    give.order = Order::kShutdown;
    for (uint32_t i = 0; i < context.shape.servers; ++i) Tell(context, i, give);
  }
  void Do(Context& context, const WriteManifest& command) {
    ++context.counts.manifests;
    const v1::CheckpointManifest& manifest = command.manifest;
    const bool whole = manifest.shards_size() == static_cast<int>(context.shape.servers) &&
                       (!(context.shape.elastic && context.shape.sync()) ||
                        manifest.worker_states_size() == static_cast<int>(context.shape.workers));
    if (!whole || (manifest_.clock() > 0 && manifest.clock() <= manifest_.clock())) {
      context.Violate("a checkpoint has all its parts, and the newest is the last", [&] {
        return absl::StrCat("at clock ", manifest.clock(), " after ", manifest_.clock());
      });
    }
    writing_[manifest.clock()] = manifest;
    Message timer;
    timer.kind = Kind::kManifest;
    timer.clock = manifest.clock();
    timer.boot = boot_;
    context.After(kCoordinator, 500, timer);
  }
  void Do(Context& context, const Event& event) {
    if (event.name == "placement_changed") ++context.counts.placements;
    const bool again = event.message.find("started again") != std::string::npos;
    if (event.name == "placement_changed" && again) ++context.counts.taken_up;
  }
  template <typename Other>
  void Do(Context&, const Other&) {}

  std::optional<CoordinatorCore> core_;
  // What survives the process.
  v1::CoordinatorRecord record_;
  v1::CheckpointManifest manifest_;
  v1::Placement last_placement_;
  std::map<uint64_t, v1::CheckpointManifest> writing_;
  uint32_t boot_ = 0;
  std::array<uint32_t, kServersMax> boots_{};
};

}  // namespace

std::unique_ptr<SimControl> MakeWholeControl(Context& context) {
  return std::make_unique<WholeControl>(context);
}

}  // namespace leeway::sim
