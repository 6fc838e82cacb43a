#include "tests/chaos/unary_transport.h"

#include <utility>

#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>

#include "common/rpc/channel.h"
#include "common/rpc/grpc_status.h"
#include "common/wire/wire.h"

namespace leeway::testing {
namespace {

using Kind = TransportRequest::Kind;

const char* MethodOf(Kind kind) {
  switch (kind) {
    case Kind::kInitialize:
      return "/leeway.v1.ParameterServer/Initialize";
    case Kind::kPush:
      return "/leeway.v1.ParameterServer/Push";
    case Kind::kPushPull:
      return "/leeway.v1.ParameterServer/PushPull";
    default:
      return "/leeway.v1.ParameterServer/Pull";
  }
}

grpc::ByteBuffer Encode(const TransportRequest& request) {
  if (request.sends()) {
    const std::span<const float> values(reinterpret_cast<const float*>(request.payload.data()),
                                        request.payload.size() / sizeof(float));
    return EncodePush(request.header, values, request.payload_owner);
  }
  v1::PullRequest message;
  *message.mutable_header() = request.header;
  message.set_latest(request.reads != ReadKind::kAtClock);
  message.set_average(request.reads == ReadKind::kAverage);
  const grpc::Slice slice(message.SerializeAsString());
  return {&slice, 1};
}

}  // namespace

struct UnaryTransport::Once {
  uint32_t server = 0;
  bool receives = false;
  std::shared_ptr<TransportCall> call;
  grpc::ClientContext context;
  grpc::ByteBuffer answer;
  grpc::Status status;
  std::unique_ptr<grpc::ClientAsyncResponseReader<grpc::ByteBuffer>> reader;

  void Finish() {
    TransportReply reply;
    absl::Status ended = ResultOf(status, context);
    if (ended.ok() && receives) {
      auto payload = DecodePullReply(answer, reply.version);
      ended = payload.status();
      if (ended.ok()) reply.payload = *std::move(payload);
    }
    call->OnDone(ended, reply);
  }
};

UnaryTransport::UnaryTransport(const TransportOptions& options) : inner_(options) {
  for (const ServerEndpoint& server : options.servers) {
    channels_.push_back(MakeChannel(server.address));
  }
  thread_ = std::thread([this] { Loop(); });
}

void UnaryTransport::Call(uint32_t server, const TransportRequest& request, Duration timeout,
                          std::shared_ptr<TransportCall> call) {
  if (request.kind == Kind::kAttach) {
    return inner_.Call(server, request, timeout, std::move(call));
  }
  auto* once = new Once();
  once->server = server;
  once->receives = request.receives();
  once->call = std::move(call);
  once->context.set_deadline(std::chrono::system_clock::now() + timeout);
  const grpc::ByteBuffer message = Encode(request);
  MutexLock lock(mutex_);
  grpc::GenericStub stub(channels_[server]);
  once->reader = stub.PrepareUnaryCall(&once->context, MethodOf(request.kind), message, &queue_);
  active_.insert(once);
  once->reader->StartCall();
  once->reader->Finish(&once->answer, &once->status, once);
  if (cancelled_) once->context.TryCancel();
}

void UnaryTransport::Loop() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
    const std::shared_ptr<Once> once(static_cast<Once*>(tag));
    inner_.CallAfter(Duration::zero(), [once] { once->Finish(); });
    MutexLock lock(mutex_);
    active_.erase(once.get());
    if (active_.empty()) idle_.NotifyAll();
  }
}

void UnaryTransport::MoveServer(uint32_t server, const ServerEndpoint& endpoint) {
  inner_.MoveServer(server, endpoint);
  MutexLock lock(mutex_);
  channels_[server] = MakeChannel(endpoint.address);
  for (Once* once : active_) {
    if (once->server == server) once->context.TryCancel();
  }
}

void UnaryTransport::Cancel() {
  {
    MutexLock lock(mutex_);
    cancelled_ = true;
    for (Once* once : active_) once->context.TryCancel();
  }
  inner_.Cancel();
}

void UnaryTransport::Close() {
  if (!thread_.joinable()) return;
  Cancel();
  {
    MutexLock lock(mutex_);
    while (!active_.empty()) idle_.Wait(mutex_);
  }
  queue_.Shutdown();
  thread_.join();
  inner_.Close();
}

}  // namespace leeway::testing
