#include "server/parameter_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/grpc_status.h"
#include "common/status.h"
#include "common/wire.h"
#include "server/rpc/unary_call.h"
#include "server/stream_session.h"

namespace leeway {
namespace {

// A push as it came: its header, its payload, and the shard that it is for.
struct ReceivedPush {
  v1::ExchangeHeader header;
  FloatPayload payload;
};

absl::StatusOr<ReceivedPush> Receive(const grpc::ByteBuffer& request) {
  ReceivedPush push;
  ASSIGN_OR_RETURN(push.payload, DecodePush(request, push.header));
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

void ParameterService::Serve(uint64_t job, uint64_t generation, std::shared_ptr<Shard> shard) {
  {
    MutexLock lock(mutex_);
    job_ = job;
    generation_ = generation;
    shard_.swap(shard);
  }
  if (shard != nullptr) shard->Close();
}

std::shared_ptr<Shard> ParameterService::shard() {
  MutexLock lock(mutex_);
  return shard_;
}

std::shared_ptr<SharedArena> ParameterService::memory() {
  const auto held = shard();
  return held == nullptr ? nullptr : held->memory();
}

void ParameterService::Tick() {
  if (const auto held = shard()) held->Tick(std::chrono::steady_clock::now() - kWaitAtMost);
}

void ParameterService::Close() {
  if (const auto held = shard()) held->Close();
}

absl::StatusOr<std::shared_ptr<Shard>> ParameterService::Find(uint64_t job, uint64_t generation) {
  MutexLock lock(mutex_);
  if (shard_ == nullptr && job_ == 0) {
    return absl::UnavailableError("the server waits for the coordinator to tell it the model");
  }
  if (job != job_) {
    return absl::FailedPreconditionError(absl::StrCat("header.job: ", absl::Hex(job),
                                                      " is not the job that this server holds (",
                                                      absl::Hex(job_), ")"));
  }
  if (generation < generation_) {
    return absl::FailedPreconditionError(
        absl::StrCat("header.generation: ", generation, "; the job has gone back to a checkpoint, ",
                     "which is generation ", generation_, ": register again"));
  }
  if (shard_ == nullptr || generation > generation_) {
    return absl::UnavailableError(absl::StrCat("the server is at generation ", generation_,
                                               " and waits for the coordinator to bring it ",
                                               "to generation ", generation));
  }
  return shard_;
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
  ASSIGN_OR_RETURN(const auto shard, Find(request.job(), request.generation()));
  return shard->Attach(request.rank(), request.incarnation());
}

void ParameterService::Initialize(const grpc::ByteBuffer& request, const Shard::Done& done) {
  auto initialize = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const ReceivedPush push, Receive(request));
    ASSIGN_OR_RETURN(const auto shard, Find(push.header.job(), push.header.generation()));
    shard->Initialize(push.header, push.payload, done);
    return absl::OkStatus();
  };
  if (absl::Status status = initialize(); !status.ok()) done(std::move(status));
}

void ParameterService::Contribute(const grpc::ByteBuffer& request, bool wants_reply,
                                  const Shard::Done& done) {
  auto contribute = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(ReceivedPush push, Receive(request));
    ASSIGN_OR_RETURN(const auto shard, Find(push.header.job(), push.header.generation()));
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
    ASSIGN_OR_RETURN(const auto shard, Find(message.header().job(), message.header().generation()));
    shard->Read(message.header(), message.latest(), std::chrono::steady_clock::now(), done);
    return absl::OkStatus();
  };
  if (absl::Status status = pull(); !status.ok()) done(std::move(status));
}

}  // namespace leeway
