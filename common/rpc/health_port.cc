#include "common/rpc/health_port.h"

#include <algorithm>
#include <utility>

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/channel_arguments.h>

#include "absl/strings/str_cat.h"
#include "common/rpc/channel.h"
#include "common/rpc/grpc_status.h"
#include "common/status.h"
#include "health/health.pb.h"

namespace leeway {
namespace {

// The maximum size of a request, and the most memory that strangers can make the port use.
constexpr int kQuestionBytesMax = 4096;
constexpr size_t kMemoryBytesMax = 16 << 20;
constexpr int kHealthCallsMax = 16;
constexpr int kThreadsMax = 4;
// The maximum number of connections, and the maximum number of bytes that a connection may send. A
// request has some hundred bytes. A load balancer, which keeps its connection for days, is asked to
// reconnect before it reaches the limit.
constexpr size_t kConnectionsMax = 64;
constexpr uint64_t kStrangerBytesMax = 64 << 10;
constexpr int kConnectionMsMax = 120'000;
constexpr int kLastCallsMs = 5'000;
constexpr int kHandshakeMsMax = 20'000;

// The name of the port in errors.
constexpr char kPort[] = "the health port (--health, LEEWAY_HEALTH)";

}  // namespace

absl::StatusOr<std::unique_ptr<HealthPort>> HealthPort::Start(const std::string& address) {
  auto listening = TcpPort::Listen(address);
  if (!listening.ok()) return Annotate(listening.status(), kPort);
  std::unique_ptr<HealthPort> health(new HealthPort);
  health->port_ = *std::move(listening);
  grpc::ServerBuilder builder;
  using Type = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  health->gate_ = builder.experimental().AddExternalConnectionAcceptor(
      Type::FROM_FD, grpc::InsecureServerCredentials());
  builder.SetMaxReceiveMessageSize(kQuestionBytesMax);
  builder.SetResourceQuota(
      grpc::ResourceQuota("health").Resize(kMemoryBytesMax).SetMaxThreads(kThreadsMax));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kHealthCallsMax);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, kUnlimitedPingStrikes);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMsMax);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, kConnectionMsMax);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, kLastCallsMs);
  builder.RegisterCallbackGenericService(&health->nothing_else_);
  // gRPC adds the health service to each server that is built while this setting is true. So it is
  // true only while this server is built.
  grpc::EnableDefaultHealthCheckService(true);
  health->server_ = builder.BuildAndStart();
  grpc::EnableDefaultHealthCheckService(false);
  if (health->server_ == nullptr) {
    return absl::UnavailableError(absl::StrCat(kPort, ": cannot listen on ", address));
  }
  health->address_ =
      absl::StrCat(address.substr(0, address.rfind(':')), ":", health->port_->port());
  RETURN_IF_ERROR(health->port_->Start(health->gate_.get(), &health->connections_));
  return health;
}

HealthPort::HealthPort()
    : connections_({.most = std::min(kConnectionsMax, static_cast<size_t>(FilesMost() / 8)),
                    .stranger_bytes = kStrangerBytesMax,
                    .advice = "probe the health port less often, or close connections after use"},
                   TcpSockets()) {}

HealthPort::~HealthPort() {
  port_.reset();
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
}

void HealthPort::Set(const std::string& service, bool serving) {
  server_->GetHealthCheckService()->SetServingStatus(service, serving);
}

absl::Status CheckHealth(const std::string& address, const std::string& service, Duration limit) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  grpc::TemplatedGenericStub<health::HealthCheckRequest, health::HealthCheckResponse> stub(
      grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
  health::HealthCheckRequest request;
  request.set_service(service);
  health::HealthCheckResponse response;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + limit);
  grpc::CompletionQueue queue;
  auto call = stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", request, &queue);
  call->StartCall();
  grpc::Status status;
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  // Use gRPC's status as it is, because gRPC's own service answers, and its refusals do not have
  // Leeway's mark.
  if (status.error_code() == grpc::StatusCode::NOT_FOUND) {
    return absl::NotFoundError(absl::StrCat(address, " does not know the service '", service, "'"));
  }
  RETURN_IF_ERROR(Annotate(ResultOf(status, context), address));
  if (response.status() == health::HealthCheckResponse::SERVING) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(address, service.empty() ? "" : ", " + service, ": is not serving"));
}

}  // namespace leeway
