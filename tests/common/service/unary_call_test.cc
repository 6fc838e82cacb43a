// What a call keeps while it waits for its answer, and that a call without permission is not read.
#include "common/service/unary_call.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "absl/strings/str_cat.h"
#include "common/rpc/channel.h"
#include "common/rpc/handed_connections.h"
#include "common/rpc/tcp_port.h"
#include "common/service/admitted_service.h"
#include "leeway/v1/parameter_server.grpc.pb.h"
#include "tests/catch.h"

namespace grpc {

// Stands for a message type.
template <>
class SerializationTraits<std::shared_ptr<int>> {
 public:
  static Status Deserialize(ByteBuffer*, std::shared_ptr<int>*) { return Status::OK; }
};

}  // namespace grpc

namespace leeway::unary_call {
namespace {

using Request = std::shared_ptr<int>;
using Call = UnaryCall<Request, v1::PushReply>;

TEST_CASE("a request is its handler's: while the answer is waited for the call does not keep it") {
  grpc::ServerBuilder builder;
  ServerQueue queue(builder);
  // Stands for gRPC: what is awaited, and the message that comes.
  std::vector<void*> awaited;
  Request* incoming = nullptr;
  Call::Done answer;
  auto method =
      std::make_shared<Call::Method>(Call::Method{CalledMethod("leeway.v1.ParameterServer.Push")});
  method->await = [&](auto*, auto*, auto*, void* tag) { awaited.push_back(tag); };
  method->read = [&](auto&, Request* request, void*) { incoming = request; };
  method->handle = [&](const Request&, Call::Done done) { answer = std::move(done); };
  Call::Serve(&queue, method);
  QueueEvent::RunTag(awaited[0], true);
  REQUIRE(incoming != nullptr);
  CHECK(answer == nullptr);
  *incoming = std::make_shared<int>(1);
  const std::weak_ptr<int> message = *incoming;
  QueueEvent::RunTag(awaited[0], true);
  CHECK(answer != nullptr);
  CHECK(message.expired());
  // Both the call that was taken and the one awaited after it end.
  REQUIRE(awaited.size() == 2);
  QueueEvent::RunTag(awaited[0], true);
  QueueEvent::RunTag(awaited[1], false);
}

// Serves Push to a client that has the token.
struct Rig {
  using Service =
      AdmittedService<v1::ParameterServer::WithRawMethod_Exchange<v1::ParameterServer::Service>>;

  Rig() : doorkeeper(Settings(), &table) {
    auto listening = TcpPort::Listen("127.0.0.1:0");
    REQUIRE(listening.ok());
    port = *std::move(listening);
    grpc::ServerBuilder builder;
    gate = PrepareForConnections({.address = "127.0.0.1:0"}, builder);
    builder.RegisterService(&service);
    queue = std::make_unique<ServerQueue>(builder, &doorkeeper);
    server = builder.BuildAndStart();
    ServeUnary<grpc::ByteBuffer, grpc::ByteBuffer>(
        queue.get(), &service, "leeway.v1.ParameterServer.Push",
        [this](const grpc::ByteBuffer& request, auto done) {
          got = request.Length();
          const grpc::Slice slice(v1::PushReply().SerializeAsString());
          done(grpc::ByteBuffer(&slice, 1));
        });
    queue->Start();
    REQUIRE(port->Start(gate.get(), &table).ok());
  }
  ~Rig() {
    port.reset();
    server->Shutdown(std::chrono::system_clock::now());
    queue.reset();
  }
  static SecuritySettings Settings() {
    SecuritySettings settings;
    settings.token = Token::Parse("0123456789abcdef", "the test").value();
    return settings;
  }
  grpc::Status Push(size_t bytes, const SecuritySettings& caller) const {
    const TransportSecurity security(caller);
    const auto channel = MakeChannel(absl::StrCat("127.0.0.1:", port->port()), security);
    const auto stub = v1::ParameterServer::NewStub(channel);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    v1::PushRequest request;
    request.set_payload(std::string(bytes, 'x'));
    v1::PushReply reply;
    return stub->Push(&context, request, &reply);
  }

  ConnectionTable table{{.most = 100}, TcpSockets()};
  Doorkeeper doorkeeper;
  Service service{"leeway.v1.ParameterServer"};
  std::unique_ptr<TcpPort> port;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> gate;
  std::unique_ptr<ServerQueue> queue;
  std::unique_ptr<grpc::Server> server;
  std::atomic<size_t> got{0};
};

TEST_CASE("a large first message comes in with the token, and without it is not read") {
  Rig rig;
  constexpr size_t kLarge = 32 << 20;
  CHECK(rig.Push(kLarge, Rig::Settings()).ok());
  CHECK(rig.got >= kLarge);
  rig.got = 0;
  const grpc::Status refused = rig.Push(kLarge, {});
  CHECK(refused.error_code() == grpc::StatusCode::UNAUTHENTICATED);
  CHECK(rig.got == 0);
  // The message was not read to the stranger's limit: gRPC took no more than its window.
  CHECK(rig.table.talkers() == 0);
}

}  // namespace
}  // namespace leeway::unary_call
