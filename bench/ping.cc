#include "bench/ping.h"

#include <memory>

#include <grpcpp/server.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bench/base/latency.h"
#include "common/rpc/channel.h"
#include "common/rpc/grpc_status.h"
#include "common/status.h"
#include "leeway/v1/parameter_server.grpc.pb.h"

namespace leeway {
namespace {

class Echo final : public v1::ParameterServer::Service {
 public:
  grpc::Status PushPull(grpc::ServerContext*, const v1::PushRequest* request,
                        v1::PullReply* reply) override {
    reply->set_payload(request->payload());
    return grpc::Status::OK;
  }
};

struct PingServerParts {
  Echo echo;
  int port = 0;
  std::unique_ptr<grpc::Server> server;
};

}  // namespace

absl::StatusOr<BenchService> PingServer(const std::string& address) {
  auto parts = std::make_shared<PingServerParts>();
  grpc::ServerBuilder builder;
  PrepareServer({.address = address}, builder, &parts->port);
  builder.RegisterService(&parts->echo);
  parts->server = builder.BuildAndStart();
  if (parts->server == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("the server of the ping cannot listen on ", address));
  }
  const bool local = absl::StartsWith(address, "unix");
  const std::string where = local ? address : absl::StrCat("127.0.0.1:", parts->port);
  return BenchService{.hello = {{"address", where}}, .handle = [parts](const Json&) {
                        return absl::StatusOr<Json>(Json::object());
                      }};
}

absl::StatusOr<BenchService> PingClient(const std::string& address) {
  std::shared_ptr<v1::ParameterServer::Stub> stub =
      v1::ParameterServer::NewStub(MakeChannel(address));
  return BenchService{.hello = Json::object(),
                      .handle = [stub](const Json& request) -> absl::StatusOr<Json> {
                        v1::PushRequest message;
                        message.set_payload(std::string(kPingBytes, 'x'));
                        v1::PullReply reply;
                        LatencyLog latency(FromSeconds(request.value("round", 0.0)));
                        while (!latency.over()) {
                          grpc::ClientContext context;
                          const Time began = std::chrono::steady_clock::now();
                          const grpc::Status status = stub->PushPull(&context, message, &reply);
                          RETURN_IF_ERROR(ResultOf(status, context));
                          latency.Add(began);
                        }
                        return latency.Answer(latency.calls());
                      }};
}

}  // namespace leeway
