// What a call that waits for its answer keeps.
#include "server/rpc/unary_call.h"

#include <memory>
#include <vector>

#include <grpcpp/server_builder.h>

#include "leeway/v1/parameter_server.grpc.pb.h"
#include "tests/catch.h"

namespace leeway::unary_call {
namespace {

using Request = std::shared_ptr<int>;
using Call = UnaryCall<Request, v1::PushReply>;

TEST_CASE("a request is its handler's: while the answer is waited for the call does not keep it") {
  grpc::ServerBuilder builder;
  ServerQueue queue(builder);
  // In gRPC's place: what is awaited, and the message that comes.
  std::vector<void*> awaited;
  Request* incoming = nullptr;
  Call::Done answer;
  auto method =
      std::make_shared<Call::Method>(Call::Method{CalledMethod("leeway.v1.ParameterServer.Push")});
  method->await = [&](auto*, Request* request, auto*, auto*, auto*, void* tag) {
    awaited.push_back(tag);
    if (incoming == nullptr) incoming = request;
  };
  method->handle = [&](const Request&, Call::Done done) { answer = std::move(done); };
  Call::Serve(&queue, method);
  *incoming = std::make_shared<int>(1);
  const std::weak_ptr<int> message = *incoming;
  QueueEvent::RunTag(awaited[0], true);
  CHECK(answer != nullptr);
  CHECK(message.expired());
  // The call that was taken and the one awaited after it end.
  REQUIRE(awaited.size() == 2);
  QueueEvent::RunTag(awaited[0], true);
  QueueEvent::RunTag(awaited[1], false);
}

}  // namespace
}  // namespace leeway::unary_call
