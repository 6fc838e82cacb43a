#include "common/rpc/channel.h"

#include <cstdlib>

#include <grpcpp/create_channel.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/version_info.h>

#include "absl/synchronization/mutex.h"
#include "common/rpc/handed_connections.h"
#include "common/rpc/library_log.h"

namespace leeway {
namespace {

constexpr int kKeepaliveMs = 20'000;
constexpr int kKeepaliveTimeoutMs = kUnansweredMsMax;
constexpr int kReconnectMsMin = 100;
// What one attempt may take (gRPC calls it the least backoff): wide-area links and busy machines.
constexpr int kConnectMsMax = 5'000;
constexpr int kReconnectMsMax = 2'000;
// A name is looked up again this soon: a pod that has moved keeps its name, at another address.
constexpr int kResolveMsMin = 500;
// From a connection to its first frame. Who is slower has no memory of the server's any more.
constexpr int kHandshakeMsMax = 20'000;
// Calls under way on one connection; a client keeps back what is more. A worker has a stream on
// each and a few calls, one that pushes and pulls by calls alone as many as a server has blocks.
constexpr int kCallsMax = 4096;
// What a read takes memory for, unless it is known that a message lacks more. Such a piece may lie
// across several messages, and stays for as long as one of them does.
constexpr int kPieceBytesMax = 256 << 10;
#if GRPC_CPP_VERSION_MAJOR == 1 && GRPC_CPP_VERSION_MINOR < 53
constexpr char kExperiments[] = "tcp_frame_size_tuning,tcp_rcv_lowat,-tcp_read_chunks";
#else
constexpr char kExperiments[] = "tcp_frame_size_tuning,tcp_rcv_lowat";
#endif

void AddArguments(const ListenOptions& options, grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(kMessageBytesMax);
  builder.SetMaxSendMessageSize(kMessageBytesMax);
  builder.AddChannelArgument(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, kPieceBytesMax);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, kUnlimitedPingStrikes);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kCallsMax);
  // Two servers on one port are a mistake, not a load balancer.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  grpc::ResourceQuota own("leeway");
  grpc::ResourceQuota& quota = options.quota != nullptr ? *options.quota : own;
  builder.SetResourceQuota(quota.Resize(options.memory_bytes));
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMsMax);
}

const TransportSecurity& SecurityOf(const ListenOptions& options) {
  return options.security != nullptr ? *options.security : ProcessSecurity();
}

}  // namespace

void PrepareGrpc() {
  // Reads wait for what is known to come instead of taking each piece: a third of the receiver's
  // processor time. And they take memory for what is known to come; "read chunks" take it for twice
  // what came last, and the connection keeps it: megabytes. Newer versions have no choice there.
  setenv("GRPC_EXPERIMENTS", kExperiments, /*replace=*/0);
  // The distribution's build looks for deadlocks at every lock of the library's.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  KeepLibraryLogToErrors();
}

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           const TransportSecurity& security) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  arguments.SetMaxSendMessageSize(kMessageBytesMax);
  arguments.SetInt(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, kPieceBytesMax);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectMsMin);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectMsMax);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMsMax);
  arguments.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, kResolveMsMin);
  // Servers are named by their own addresses; a proxy of the environment must not come between.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  auto credentials = security.ForChannel(address);
  auto interceptors = security.ForCalls();
  if (interceptors.empty()) return grpc::CreateCustomChannel(address, credentials, arguments);
  return grpc::experimental::CreateCustomChannelWithInterceptors(address, credentials, arguments,
                                                                 std::move(interceptors));
}

void PrepareServer(const ListenOptions& options, grpc::ServerBuilder& builder, int* port) {
  AddArguments(options, builder);
  builder.AddListeningPort(options.address, SecurityOf(options).ForPort(options.address), port);
}

std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> PrepareForConnections(
    const ListenOptions& options, grpc::ServerBuilder& builder) {
  AddArguments(options, builder);
  using Type = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  return builder.experimental().AddExternalConnectionAcceptor(
      Type::FROM_FD, SecurityOf(options).ForPort(options.address));
}

void AddLocalPort(const std::string& address, grpc::ServerBuilder& builder) {
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
}

}  // namespace leeway
