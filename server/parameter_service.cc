#include "server/parameter_service.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "common/grpc_status.h"
#include "common/status.h"
#include "common/wire.h"
#include "config/contributors.h"
#include "config/shards.h"
#include "server/rpc/unary_call.h"
#include "server/stream_session.h"

namespace leeway {
namespace {

// A push as it came.
struct ReceivedPush {
  v1::ExchangeHeader header;
  FloatPayload payload;
};

absl::StatusOr<ReceivedPush> Receive(const grpc::ByteBuffer& request, ByteBudget& budget) {
  ReceivedPush push;
  ASSIGN_OR_RETURN(FloatPayload payload, DecodePush(request, push.header));
  push.payload = FloatPayload(budget.Hold(request.Length(), payload.owner()), payload.pieces());
  return push;
}

// Answers a unary call.
using AnswerCall = std::function<void(absl::StatusOr<grpc::ByteBuffer>)>;

Shard::Done AnswerAcknowledged(AnswerCall answer) {
  return [answer = std::move(answer)](absl::StatusOr<BlockReading> reading) {
    if (!reading.ok()) return answer(reading.status());
    v1::PushReply message;
    message.set_duplicate(reading->duplicate);
    const grpc::Slice slice(message.SerializeAsString());
    answer(grpc::ByteBuffer(&slice, 1));
  };
}

Shard::Done AnswerValues(AnswerCall answer) {
  return [answer = std::move(answer)](absl::StatusOr<BlockReading> reading) {
    if (!reading.ok()) return answer(reading.status());
    if (!reading->has_payload() && !reading->header.unchanged()) {
      return answer(absl::InternalError("the version asked for has no values"));
    }
    // The reply refers to the version's own memory and keeps it until it is sent.
    const PayloadBytes payload = reading->has_payload() ? reading->TakePayload() : PayloadBytes();
    answer(EncodePullReply(reading->header, payload.bytes, payload.owner));
  };
}

}  // namespace

void ParameterService::Serve(Holdings holdings) {
  std::vector<std::shared_ptr<Shard>> before;
  {
    MutexLock lock(mutex_);
    before = std::move(holdings_.shards);
    holdings_ = std::move(holdings);
    for (const auto& kept : holdings_.shards) std::erase(before, kept);
  }
  for (const auto& shard : before) {
    if (shard != nullptr) shard->Close();
  }
}

void ParameterService::Serve(uint64_t job, uint64_t generation, std::shared_ptr<Shard> shard) {
  auto memory = shard->memory();
  Serve({job, generation, {std::move(shard)}, {}, std::move(memory)});
}

std::vector<std::shared_ptr<Shard>> ParameterService::shards() {
  std::vector<std::shared_ptr<Shard>> here;
  MutexLock lock(mutex_);
  for (const auto& shard : holdings_.shards) {
    if (shard != nullptr) here.push_back(shard);
  }
  return here;
}

std::shared_ptr<SharedArena> ParameterService::memory() {
  MutexLock lock(mutex_);
  return holdings_.memory;
}

void ParameterService::SetLive(uint32_t rank, bool live) {
  for (const auto& shard : shards()) shard->SetLive(rank, live);
}

absl::Status ParameterService::CommitSet(const v1::CommitSetRequest& request, ServerQueue* queue) {
  {
    MutexLock lock(mutex_);
    const absl::Status held = CheckHeld(request.job(), request.generation());
    // It holds nothing yet, and would not be told what while it is told this: whoever gets a shard
    // here asks for its sets.
    if (absl::IsUnavailable(held)) return absl::OkStatus();
    RETURN_IF_ERROR(held);
  }
  const std::vector<uint32_t> ranks(request.ranks().begin(), request.ranks().end());
  Shard::Share share = Shard::InTurn;
  if (queue != nullptr) {
    share = [queue](uint64_t parts, const auto& run) { queue->Share(parts, run); };
  }
  for (const auto& shard : shards()) {
    RETURN_IF_ERROR(shard->CommitSet(request.clock(), ranks, share));
  }
  return absl::OkStatus();
}

void ParameterService::Tick() {
  const Time now = std::chrono::steady_clock::now();
  for (const auto& shard : shards()) shard->Tick(now - Shard::kWaitAtMost);
  streams_.Tick(now);
}

void ParameterService::SetLimits(const v1::TrainingJob& job) {
  budget_.SetLimit(job.limits().held_bytes());
  unread_bytes_max_ = job.limits().unread_bytes();
  const uint64_t oldest_block = job.workers().count() * job.servers().block_bytes();
  received_bytes_max_ = CommitsSets(job) ? ByteBudget::kUnlimited : budget_.limit() + oldest_block;
  // A worker has them for each shard, and one server may come to serve all, or to be the replica.
  const uint32_t shards = ShardsOf(job);
  streams_.SetLimits(job.transport().channels() * shards, shards);
}

void ParameterService::Close() {
  for (const auto& shard : shards()) shard->Close();
}

absl::Status ParameterService::CheckLease(Time now) const {
  if (now.time_since_epoch().count() < lease_.load(std::memory_order_relaxed)) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(
      "this server has not heard from the coordinator for a lease: others may own its blocks by "
      "now; send the same again");
}

absl::Status ParameterService::CheckHeld(uint64_t job, uint64_t generation) const {
  if (holdings_.job == 0) {
    return absl::UnavailableError("the server waits for the coordinator to tell it the model");
  }
  if (job != holdings_.job) {
    return absl::FailedPreconditionError(absl::StrCat("header.job: ", absl::Hex(job),
                                                      " is not the job that this server holds (",
                                                      absl::Hex(holdings_.job), ")"));
  }
  if (generation < holdings_.generation) {
    return absl::FailedPreconditionError(
        absl::StrCat("header.generation: ", generation, "; the job has gone back to a checkpoint, ",
                     "which is generation ", holdings_.generation, ": register again"));
  }
  if (generation == holdings_.generation) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("the server is at generation ", holdings_.generation,
                   " and waits for the coordinator to bring it to generation ", generation));
}

absl::StatusOr<std::shared_ptr<Shard>> ParameterService::Find(const v1::ExchangeHeader& header) {
  RETURN_IF_ERROR(CheckLease(std::chrono::steady_clock::now()));
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(CheckHeld(header.job(), header.generation()));
  const size_t shards = holdings_.shards.size();
  const size_t number = shards == 0 ? 0 : header.block() % shards;
  if (shards > 0 && holdings_.shards[number] != nullptr) return holdings_.shards[number];
  // A block that nobody has: the shard that is here says so.
  for (const auto& shard : holdings_.shards) {
    if (shard != nullptr && header.block() >= shard->store().layout().blocks()) return shard;
  }
  return absl::UnavailableError(
      absl::StrCat("block ", header.block(), ": this server does not own shard ", number,
                   " (yet, or any more); the coordinator knows who does"));
}

absl::Status ParameterService::Replicate(const v1::ExchangeHeader& header,
                                         const v1::ReplicatedBlock& replicated,
                                         const FloatPayload& payload,
                                         const std::function<bool()>& stands) {
  std::shared_ptr<ReplicaStore> store;
  {
    MutexLock lock(mutex_);
    RETURN_IF_ERROR(CheckHeld(header.job(), header.generation()));
    const size_t shards = holdings_.replicas.size();
    if (shards > 0) store = holdings_.replicas[header.block() % shards];
  }
  if (store != nullptr) return store->Take(header, replicated, payload, stands);
  return absl::FailedPreconditionError(
      absl::StrCat("block ", header.block(), ": this server does not hold its replica"));
}

absl::Status ParameterService::AdmitOver(Shard& shard, const v1::ExchangeHeader& header) {
  absl::Status status = shard.AdmitBeyondBudget(header);
  if (status.ok()) return status;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  if (budget_.CountRefused(std::chrono::duration_cast<std::chrono::seconds>(now).count())) {
    const ByteBudget::Load load = budget_.load();
    spdlog::warn(
        "{}; {} bytes held, {} requests refused so far. The job goes on, slower than it could: a "
        "larger limits.held_bytes, or more servers, leaves more room",
        std::string(status.message()), load.held_bytes, load.refused_contributions);
  }
  return status;
}

void ParameterService::Await(ServerQueue* queue) {
  using Bytes = grpc::ByteBuffer;
  ServeUnary<v1::AttachRequest, v1::AttachReply>(
      queue, this, &ParameterService::RequestAttach,
      [this](const v1::AttachRequest& request, auto done) { done(Attach(request)); });
  ServeUnary<Bytes, Bytes>(queue, this, &ParameterService::RequestInitialize,
                           [this](const Bytes& request, AnswerCall done) {
                             Initialize(request, AnswerAcknowledged(std::move(done)));
                           });
  ServeUnary<Bytes, Bytes>(queue, this, &ParameterService::RequestPush,
                           [this](const Bytes& request, AnswerCall done) {
                             Contribute(request, false, AnswerAcknowledged(std::move(done)));
                           });
  ServeUnary<Bytes, Bytes>(queue, this, &ParameterService::RequestPushPull,
                           [this](const Bytes& request, AnswerCall done) {
                             Contribute(request, true, AnswerValues(std::move(done)));
                           });
  ServeUnary<Bytes, Bytes>(queue, this, &ParameterService::RequestPull,
                           [this](const Bytes& request, AnswerCall done) {
                             Pull(request, AnswerValues(std::move(done)));
                           });
  StreamSession::Await(this, queue);
}

absl::StatusOr<v1::AttachReply> ParameterService::Attach(const v1::AttachRequest& request) {
  v1::ExchangeHeader header;
  header.set_job(request.job());
  header.set_generation(request.generation());
  if (request.has_shard()) {
    header.set_block(request.shard());
    ASSIGN_OR_RETURN(const auto shard, Find(header));
    ASSIGN_OR_RETURN(v1::AttachReply reply, shard->Attach(request.rank(), request.incarnation()));
    // A shard without blocks has not looked whether there is such a rank.
    if (shard->IsRank(request.rank())) streams_.OnAttach(request.rank(), request.incarnation());
    return reply;
  }
  RETURN_IF_ERROR(CheckLease(std::chrono::steady_clock::now()));
  {
    MutexLock lock(mutex_);
    RETURN_IF_ERROR(CheckHeld(request.job(), request.generation()));
  }
  v1::AttachReply reply;
  reply.set_clock(std::numeric_limits<uint64_t>::max());
  const auto here = shards();
  for (const auto& shard : here) {
    ASSIGN_OR_RETURN(const auto one, shard->Attach(request.rank(), request.incarnation()));
    reply.set_clock(std::min(reply.clock(), one.clock()));
    reply.set_counted(std::max(reply.counted(), one.counted()));
    reply.set_needs_initialize(reply.needs_initialize() || one.needs_initialize());
  }
  const bool is_rank = std::any_of(
      here.begin(), here.end(), [&](const auto& shard) { return shard->IsRank(request.rank()); });
  if (is_rank) streams_.OnAttach(request.rank(), request.incarnation());
  return reply;
}

void ParameterService::Initialize(const grpc::ByteBuffer& request, const Shard::Done& done) {
  auto initialize = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const ReceivedPush push, Receive(request, budget_));
    ASSIGN_OR_RETURN(const auto shard, Find(push.header));
    shard->Initialize(push.header, push.payload, done);
    return absl::OkStatus();
  };
  if (absl::Status status = initialize(); !status.ok()) done(std::move(status));
}

void ParameterService::Contribute(const grpc::ByteBuffer& request, bool wants_reply,
                                  const Shard::Done& done) {
  auto contribute = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(ReceivedPush push, Receive(request, budget_));
    ASSIGN_OR_RETURN(const auto shard, Find(push.header));
    RETURN_IF_ERROR(Admit(*shard, push.header));
    shard->Contribute(push.header, std::move(push.payload), wants_reply,
                      std::chrono::steady_clock::now(), done);
    return absl::OkStatus();
  };
  if (absl::Status status = contribute(); !status.ok()) done(std::move(status));
}

void ParameterService::Pull(const grpc::ByteBuffer& request, const Shard::Done& done) {
  auto pull = [&]() -> absl::Status {
    v1::PullRequest message;
    grpc::ByteBuffer bytes(request);
    if (!grpc::SerializationTraits<v1::PullRequest>::Deserialize(&bytes, &message).ok()) {
      return absl::InvalidArgumentError("PullRequest: not a protobuf message");
    }
    ASSIGN_OR_RETURN(const auto shard, Find(message.header()));
    shard->Read(message.header(), message.latest(), std::chrono::steady_clock::now(), done);
    return absl::OkStatus();
  };
  if (absl::Status status = pull(); !status.ok()) done(std::move(status));
}

}  // namespace leeway
