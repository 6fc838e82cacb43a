#include "server/service/parameter_service.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/counted.h"
#include "common/service/unary_call.h"
#include "common/status.h"
#include "common/wire/wire.h"
#include "config/contributors.h"
#include "config/shards.h"
#include "config/topology.h"
#include "server/service/stream_session.h"

namespace leeway {
namespace {

// A push request as it was received.
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
      return answer(absl::InternalError("the requested version has no values"));
    }
    // The reply refers to the version's own memory and keeps it until it is sent.
    const PayloadBytes payload = reading->has_payload() ? reading->TakePayload() : PayloadBytes();
    answer(EncodePullReply(reading->header, payload.bytes, payload.owner));
  };
}

absl::StatusOr<v1::PullRequest> ReadPull(const grpc::ByteBuffer& request) {
  v1::PullRequest message;
  grpc::ByteBuffer bytes(request);
  if (!grpc::SerializationTraits<v1::PullRequest>::Deserialize(&bytes, &message).ok()) {
    return absl::InvalidArgumentError("PullRequest: not a protobuf message");
  }
  return message;
}

absl::Status HoldPushToRank(const Caller& caller, const grpc::ServerContext&,
                            grpc::ByteBuffer& request) {
  if (!caller.rank) return absl::OkStatus();
  v1::ExchangeHeader header;
  RETURN_IF_ERROR(DecodePush(request, header).status());
  return CheckRank(caller, header.rank());
}

absl::Status HoldPullToRank(const Caller& caller, const grpc::ServerContext&,
                            grpc::ByteBuffer& request) {
  if (!caller.rank) return absl::OkStatus();
  ASSIGN_OR_RETURN(const v1::PullRequest message, ReadPull(request));
  return CheckRank(caller, message.header().rank());
}

}  // namespace

void ParameterService::SetLive(uint32_t rank, bool live) {
  for (const auto& shard : table_.shards()) shard->SetLive(rank, live);
}

absl::Status ParameterService::CommitSet(const v1::CommitSetRequest& request, ServerQueue* queue) {
  const absl::Status held = table_.CheckHeld(request.job(), request.generation());
  // This server has no shard yet, so it need not know the set. If it gets a shard later, it asks
  // the coordinator for the sets.
  if (absl::IsUnavailable(held)) return absl::OkStatus();
  RETURN_IF_ERROR(held);
  const std::vector<uint32_t> ranks(request.ranks().begin(), request.ranks().end());
  Shard::Share share = Shard::InTurn;
  if (queue != nullptr) {
    share = [queue](uint64_t parts, const auto& run) { queue->Share(parts, run); };
  }
  const auto here = table_.shards();
  for (const auto& shard : here) RETURN_IF_ERROR(shard->CheckSet(request.clock(), ranks));
  for (const auto& shard : here) {
    RETURN_IF_ERROR(shard->CommitSet(request.clock(), ranks, share));
  }
  return absl::OkStatus();
}

void ParameterService::Tick() {
  const Time now = std::chrono::steady_clock::now();
  for (const auto& shard : table_.shards()) shard->Tick(now - Shard::kWaitAtMost);
  if (peers_ != nullptr) peers_->pieces.Tick(now - Shard::kWaitAtMost);
  streams_.Tick(now);
}

void ParameterService::SetLimits(const v1::TrainingJob& job) {
  table_.budget().SetLimit(job.limits().held_bytes());
  table_.LetPeersReplicate(WorkersHoldBlocks(job));
  ranks_ = job.workers().count();
  const uint64_t oldest_block = job.workers().count() * job.servers().block_bytes();
  received_bytes_max_ =
      CommitsSets(job) ? ByteBudget::kUnlimited : table_.budget().limit() + oldest_block;
  // A worker has transport.channels streams for each shard. The limits allow for one server that
  // owns all shards or keeps all replicas.
  const uint32_t shards = ShardsOf(job);
  streams_.SetLimits({.of_rank = job.transport().channels() * shards,
                      .of_servers = ServersMost(job),
                      .unread_bytes = job.limits().unread_bytes()});
  // Besides the streams, each worker has connections for its calls to the servers and to the
  // coordinator, and the servers have connections to each other in both directions.
  connections_of_job_ =
      uint64_t{job.workers().count()} * (uint64_t{job.transport().channels()} * shards + 2) +
      uint64_t{4} * ServersMost(job);
}

void ParameterService::Close() {
  for (const auto& shard : table_.shards()) shard->Close();
  if (peers_ == nullptr) return;
  peers_->pieces.Close();
  peers_->meetings.Close();
}

absl::Status ParameterService::AdmitPeer(const v1::ExchangeHeader& header) const {
  if (peers_ == nullptr) {
    return absl::UnimplementedError(
        "method: this process has no worker, so it publishes nothing and meets nobody");
  }
  if (const uint32_t ranks = ranks_; header.rank() >= ranks) {
    return absl::InvalidArgumentError(absl::StrCat("header.rank: worker ", header.rank(),
                                                   " does not exist: the job has ",
                                                   Counted(ranks, "worker")));
  }
  if (!table_.leased()) return ShardTable::LeaseIsOver();
  return table_.lives().Check(header.rank(), header.incarnation());
}

Shard::Done ParameterService::WhileLeased(Shard::Done done) const {
  return [this, done = std::move(done)](absl::StatusOr<BlockReading> reading) {
    if (reading.ok() && !table_.leased()) reading = ShardTable::LeaseIsOver();
    done(std::move(reading));
  };
}

void ParameterService::Await(ServerQueue* queue) {
  ServeUnary<v1::AttachRequest, v1::AttachReply>(
      queue, this, "leeway.v1.ParameterServer.Attach",
      [this](const v1::AttachRequest& request, auto done) { done(Attach(request)); });
  const auto serve = [&](const char* name, auto handler, auto check) {
    ServeUnary<grpc::ByteBuffer, grpc::ByteBuffer>(
        queue, this, absl::StrCat("leeway.v1.ParameterServer.", name),
        [handler](const grpc::ByteBuffer& request, AnswerCall done) {
          handler(request, std::move(done));
        },
        check);
  };
  serve(
      "Initialize",
      [this](const auto& request, AnswerCall done) {
        Initialize(request, AnswerAcknowledged(std::move(done)));
      },
      HoldPushToRank);
  serve(
      "Push",
      [this](const auto& request, AnswerCall done) {
        Contribute(request, false, AnswerAcknowledged(std::move(done)));
      },
      HoldPushToRank);
  serve(
      "PushPull",
      [this](const auto& request, AnswerCall done) {
        Contribute(request, true, AnswerValues(std::move(done)));
      },
      HoldPushToRank);
  serve(
      "Pull",
      [this](const auto& request, AnswerCall done) {
        Pull(request, AnswerValues(std::move(done)));
      },
      HoldPullToRank);
  StreamSession::Await(this, queue);
}

absl::StatusOr<v1::AttachReply> ParameterService::Attach(const v1::AttachRequest& request) {
  v1::ExchangeHeader header;
  header.set_job(request.job());
  header.set_generation(request.generation());
  RETURN_IF_ERROR(table_.CheckShardNumber(request));
  RETURN_IF_ERROR(table_.lives().Check(request.rank(), request.incarnation()));
  if (request.has_shard()) {
    header.set_block(request.shard());
    ASSIGN_OR_RETURN(const auto shard, table_.Find(header));
    ASSIGN_OR_RETURN(v1::AttachReply reply, shard->Attach(request.rank(), request.incarnation()));
    // A shard without blocks has not checked whether the job has this rank.
    if (shard->IsRank(request.rank())) streams_.OnAttach(request.rank(), request.incarnation());
    return reply;
  }
  if (!table_.leased()) return ShardTable::LeaseIsOver();
  RETURN_IF_ERROR(table_.CheckHeld(request.job(), request.generation()));
  v1::AttachReply reply;
  reply.set_clock(std::numeric_limits<uint64_t>::max());
  const auto here = table_.shards();
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
    ASSIGN_OR_RETURN(const ReceivedPush push, Receive(request, table_.budget()));
    ASSIGN_OR_RETURN(const auto shard, table_.Admit(push.header, ShardTable::Want::kAnswer));
    shard->Initialize(push.header, push.payload, done);
    return absl::OkStatus();
  };
  if (absl::Status status = initialize(); !status.ok()) done(std::move(status));
}

void ParameterService::Contribute(const grpc::ByteBuffer& request, bool wants_reply,
                                  const Shard::Done& done) {
  auto contribute = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(ReceivedPush push, Receive(request, table_.budget()));
    ASSIGN_OR_RETURN(const auto shard, table_.Admit(push.header, ShardTable::Want::kHold));
    shard->Contribute(push.header, std::move(push.payload), wants_reply,
                      std::chrono::steady_clock::now(), WhileLeased(done));
    return absl::OkStatus();
  };
  if (absl::Status status = contribute(); !status.ok()) done(std::move(status));
}

void ParameterService::Pull(const grpc::ByteBuffer& request, const Shard::Done& done) {
  auto pull = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const v1::PullRequest message, ReadPull(request));
    const auto want = message.latest() ? ShardTable::Want::kLatest : ShardTable::Want::kAnswer;
    ASSIGN_OR_RETURN(const auto shard, table_.Admit(message.header(), want));
    shard->Read(message.header(), ReadKindOf(message), std::chrono::steady_clock::now(),
                WhileLeased(done));
    return absl::OkStatus();
  };
  if (absl::Status status = pull(); !status.ok()) done(std::move(status));
}

}  // namespace leeway
