#include "tests/sim/whole_control.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/server/coordinator/core/scenario.h"

namespace leeway::sim {
namespace {

CoordinatorOptions OptionsOf(const Shape& shape) {
  static constexpr v1::ConsistencyMode kModes[] = {
      v1::CONSISTENCY_MODE_SYNC, v1::CONSISTENCY_MODE_BOUNDED, v1::CONSISTENCY_MODE_ASYNC};
  CoordinatorOptions options = TestOptions({.workers = shape.workers,
                                            .servers = shape.resizes ? shape.begins : shape.servers,
                                            .mode = kModes[static_cast<int>(shape.mode)],
                                            .clocks = shape.clocks,
                                            .cut_every = shape.cut_every,
                                            .elastic = shape.elastic});
  v1::Limits* limits = options.job.mutable_limits();
  options.job.mutable_servers()->set_replicas(shape.replicas);
  options.job.mutable_servers()->set_shards(shape.servers);
  if (shape.continues) options.job.mutable_workers()->set_on_worker_loss(v1::WORKER_LOSS_CONTINUE);
  limits->set_grace_seconds(0.002);
  options.job.mutable_consistency()->set_grace_deviations(shape.clocks % 2 == 0 ? 3 : 0);
  if (shape.backup > 0) options.job.mutable_consistency()->set_backup_workers(shape.backup);
  limits->set_lease_seconds(1e-6 * kLease);
  limits->set_start_seconds(0.1);
  limits->set_checkpoint_seconds(0.1);
  return options;
}

// Copies the owner of each shard and the epoch into the reply; epoch 0: nothing is new.
template <typename Reply>
void PackServers(const Reply& from, Message& reply) {
  reply.version = Version();
  if (from.servers_size() == 0) return;
  reply.version.number = from.epoch();
  for (int shard = 0; shard < from.servers_size(); ++shard) {
    // "server1:1"
    reply.version.clocks[shard] = static_cast<uint64_t>(from.servers(shard)[6] - '0');
  }
}

// Fills in the fields that identify a worker's life, at a clock.
template <typename Request>
Request OfWorker(const Message& message) {
  Request request;
  request.set_job(kJob);
  request.set_rank(message.rank);
  request.set_incarnation(message.incarnation);
  request.set_generation(message.generation);
  request.set_clock(message.clock);
  return request;
}

}  // namespace

WholeControl::WholeControl(Context& context)
    : core_(std::in_place, OptionsOf(context.shape), context.LocalTime(kCoordinator)) {
  live_.fill(true);
  ScheduleTick(context);
  // Like ServerProcess::StartCoordinator.
  record_.set_job_id(kJob);
}

void WholeControl::Restart(Context& context) {
  if (record_.outcome() != v1::JOB_STARTING) return;
  CoordinatorOptions options = OptionsOf(context.shape);
  if (context.bug == Bug::kForgetBegun) record_.clear_steps_per_epoch();
  options.generation = context.bug == Bug::kForgetRecord ? 0 : record_.generation() + 1;
  ++boot_;
  options.incarnation_base = record_.incarnations();
  // Nobody has heard of an incarnation that is not on record.
  for (uint64_t& newest : context.newest) newest = std::min(newest, record_.incarnations());
  options.before = record_;
  if (manifest_.clock() > 0) options.resumed = {manifest_, "checkpoint"};
  context.generation = std::max(context.generation, options.generation);
  owed_.reset();
  core_.emplace(std::move(options), context.LocalTime(kCoordinator));
  live_.fill(true);
  extended_.reset();
  for (uint32_t i = 0; i < context.shape.servers; ++i) Connect(i, UINT32_MAX);
}

void WholeControl::OnMessage(Context& context, const Message& message) {
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
      SaveState(context, message, now);
      break;
    case Kind::kStopJob:
      core_->StopJob("the schedule says so", now);
      break;
    case Kind::kResize:
      Resize(context, static_cast<uint32_t>(message.clock), now);
      break;
    case Kind::kManifest:
      ManifestDone(context, message, now);
      break;
    case Kind::kWake:
      if (message.boot == boot_) Wake(context, now);
      break;
    default:
      FromServer(context, message, now);
  }
  Carry(context);
}

void WholeControl::Wake(Context&, Time now) {
  const auto alarm = core_->alarm();
  if (alarm && now >= *alarm) core_->Wake(now);
}

void WholeControl::OnTick(Context& context) {
  if (const auto record = std::exchange(owed_, std::nullopt)) Keep(context, *record);
  if (context.bug == Bug::kSilenceBelieved) BelieveSilence(context);
  core_->Tick(context.LocalTime(kCoordinator));
  Carry(context);
  TickLinks(context);
  ScheduleTick(context);
}

void WholeControl::Resize(Context& context, uint32_t servers, Time now) {
  v1::ResizeServersRequest request;
  request.set_servers(servers);
  const auto resized = core_->ResizeServers(request, now);
  context.counts.resizes += resized.ok() && resized->before() != servers ? 1 : 0;
  if (!absl::IsInvalidArgument(resized.status())) return;
  context.Violate("a job can have as many servers as it has shards",
                  [&] { return resized.status().ToString(); });
}

bool WholeControl::Drain(Context& context, uint32_t server, uint32_t boot) {
  v1::DrainServerRequest request;
  request.set_job(kJob);
  request.set_index(server);
  request.set_nonce(boot + 1);
  const auto reply = core_->DrainServer(request, context.LocalTime(kCoordinator));
  Carry(context);
  return reply.ok() && reply->released() && reply->message().empty();
}

bool WholeControl::Wants(Context& context, uint32_t server) const {
  const v1::JobStatus status = core_->Status(context.LocalTime(kCoordinator));
  return status.state() <= v1::JOB_RUNNING && server < status.servers_wanted();
}

std::string WholeControl::Failure(Context& context) const {
  if (core_->state() != v1::JOB_FAILED) return "";
  return core_->Status(context.LocalTime(kCoordinator)).message();
}

std::string WholeControl::Where(Context& context) const {
  return core_->Status(context.LocalTime(kCoordinator)).ShortDebugString();
}

// ---- from workers

void WholeControl::Register(Context& context, const Message& message, Time now) {
  auto request = WorkerRequest(message.rank, message.life);
  request.set_steps_per_epoch(1);
  // Large enough for one block on every server.
  *request.mutable_schema() = TestSchema(1000);
  const auto answer = core_->RegisterWorker(request, now);
  Message reply = ReplyTo(message, answer.status().code());
  // The worker's stop request is claimed, even if it was not answered yet.
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

void WholeControl::Heartbeat(Context& context, const Message& message, Time now) {
  auto request = OfWorker<v1::HeartbeatRequest>(message);
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

void WholeControl::StopAt(Context& context, const Message& message, Time now) {
  auto request = OfWorker<v1::StopAtRequest>(message);
  const auto answer = core_->StopAt(request, now);
  CheckFence(context, message, answer.ok());
  Message reply = ReplyTo(message, answer.status().code());
  reply.has_stop = answer.ok();
  if (answer.ok()) reply.stop_at = answer->stop_at();
  context.Send(reply);
}

void WholeControl::Leave(Context& context, const Message& message, Time now) {
  auto request = OfWorker<v1::LeaveRequest>(message);
  request.set_reason(message.flag ? v1::LEAVE_FINISHED : v1::LEAVE_STOPPED);
  request.set_waits(true);
  const auto left = core_->Leave(request, now);
  CheckFence(context, message, left.ok());
  Message reply = ReplyTo(message, left.status().code());
  reply.flag = left.ok() && left->sealed();
  context.Send(reply);
}

void WholeControl::SaveState(Context& context, const Message& message, Time now) {
  const absl::Status saved = core_->WorkerStateSaved(
      {kJob, message.generation, message.rank, message.incarnation, message.clock},
      TestFile(absl::StrCat("worker-", message.rank)), now);
  context.Send(ReplyTo(message, saved.code()));
}

void WholeControl::CheckFence(Context& context, const Message& message, bool heard) {
  if (!heard || message.incarnation >= context.newest[message.rank]) return;
  context.Violate("nobody fenced is heard",
                  [&] { return absl::StrCat("the coordinator heard ", Describe(message)); });
}

std::unique_ptr<SimControl> MakeWholeControl(Context& context) {
  return std::make_unique<WholeControl>(context);
}

}  // namespace leeway::sim
