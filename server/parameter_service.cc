#include "server/parameter_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/grpc_status.h"
#include "common/status.h"
#include "common/wire.h"

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

Shard::Done AnswerAcknowledged(grpc::ServerUnaryReactor* reactor, grpc::ByteBuffer* reply) {
  return [reactor, reply](absl::StatusOr<BlockReading> reading) {
    if (!reading.ok()) return reactor->Finish(ToGrpc(reading.status()));
    v1::PushReply message;
    message.set_duplicate(reading->duplicate);
    bool own_buffer;
    reactor->Finish(
        grpc::SerializationTraits<v1::PushReply>::Serialize(message, reply, &own_buffer));
  };
}

Shard::Done AnswerValues(grpc::ServerUnaryReactor* reactor, grpc::ByteBuffer* reply) {
  return [reactor, reply](absl::StatusOr<BlockReading> reading) {
    if (!reading.ok()) return reactor->Finish(ToGrpc(reading.status()));
    if (!reading->values && !reading->header.unchanged()) {
      return reactor->Finish(ToGrpc(absl::InternalError("the version asked for has no values")));
    }
    if (!reading->values) {
      *reply = EncodePullReply(reading->header, {}, nullptr);
      return reactor->Finish(grpc::Status::OK);
    }
    // The reply refers to the version's own memory and keeps it until it is sent.
    auto values = std::make_shared<SharedFloats>(std::move(reading->values));
    const std::span<const float> span = values->span();
    *reply = EncodePullReply(reading->header, span, std::move(values));
    reactor->Finish(grpc::Status::OK);
  };
}

}  // namespace

void ParameterService::Serve(uint64_t job, std::shared_ptr<Shard> shard) {
  MutexLock lock(mutex_);
  job_ = job;
  shard_ = std::move(shard);
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

absl::StatusOr<std::shared_ptr<Shard>> ParameterService::Find(uint64_t job) {
  MutexLock lock(mutex_);
  if (shard_ == nullptr) {
    return absl::UnavailableError("the server waits for the coordinator to tell it the model");
  }
  if (job != job_) {
    return absl::FailedPreconditionError(absl::StrCat("header.job: ", absl::Hex(job),
                                                      " is not the job that this server holds (",
                                                      absl::Hex(job_), ")"));
  }
  return shard_;
}

grpc::ServerUnaryReactor* ParameterService::Attach(grpc::CallbackServerContext* context,
                                                   const v1::AttachRequest* request,
                                                   v1::AttachReply* reply) {
  auto attach = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const auto shard, Find(request->job()));
    ASSIGN_OR_RETURN(*reply, shard->Attach(request->rank(), request->incarnation()));
    return absl::OkStatus();
  };
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(attach()));
  return reactor;
}

grpc::ServerUnaryReactor* ParameterService::Initialize(grpc::CallbackServerContext* context,
                                                       const grpc::ByteBuffer* request,
                                                       grpc::ByteBuffer* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  Shard::Done done = AnswerAcknowledged(reactor, reply);
  auto initialize = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const ReceivedPush push, Receive(*request));
    ASSIGN_OR_RETURN(const auto shard, Find(push.header.job()));
    shard->Initialize(push.header, push.payload, done);
    return absl::OkStatus();
  };
  if (absl::Status status = initialize(); !status.ok()) done(std::move(status));
  return reactor;
}

grpc::ServerUnaryReactor* ParameterService::Push(grpc::CallbackServerContext* context,
                                                 const grpc::ByteBuffer* request,
                                                 grpc::ByteBuffer* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  Contribute(*request, /*wants_reply=*/false, AnswerAcknowledged(reactor, reply));
  return reactor;
}

grpc::ServerUnaryReactor* ParameterService::PushPull(grpc::CallbackServerContext* context,
                                                     const grpc::ByteBuffer* request,
                                                     grpc::ByteBuffer* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  Contribute(*request, /*wants_reply=*/true, AnswerValues(reactor, reply));
  return reactor;
}

void ParameterService::Contribute(const grpc::ByteBuffer& request, bool wants_reply,
                                  Shard::Done done) {
  auto contribute = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(ReceivedPush push, Receive(request));
    ASSIGN_OR_RETURN(const auto shard, Find(push.header.job()));
    shard->Contribute(push.header, std::move(push.payload), wants_reply,
                      std::chrono::steady_clock::now(), done);
    return absl::OkStatus();
  };
  if (absl::Status status = contribute(); !status.ok()) done(std::move(status));
}

grpc::ServerUnaryReactor* ParameterService::Pull(grpc::CallbackServerContext* context,
                                                 const grpc::ByteBuffer* request,
                                                 grpc::ByteBuffer* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  Shard::Done done = AnswerValues(reactor, reply);
  auto pull = [&]() -> absl::Status {
    v1::PullRequest message;
    grpc::ByteBuffer bytes(*request);
    if (!grpc::SerializationTraits<v1::PullRequest>::Deserialize(&bytes, &message).ok()) {
      return absl::InvalidArgumentError("PullRequest: not a protobuf message");
    }
    ASSIGN_OR_RETURN(const auto shard, Find(message.header().job()));
    shard->Read(message.header(), message.latest(), std::chrono::steady_clock::now(), done);
    return absl::OkStatus();
  };
  if (absl::Status status = pull(); !status.ok()) done(std::move(status));
  return reactor;
}

}  // namespace leeway
