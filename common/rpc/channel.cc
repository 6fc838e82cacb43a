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
// The time limit of one connection attempt, which gRPC calls the minimum backoff. It is long enough
// for wide-area links and busy machines.
constexpr int kConnectMsMax = 5'000;
constexpr int kReconnectMsMax = 2'000;
// The time after which a name may be resolved again. It is short because a pod that moves keeps its
// name but gets a new address.
constexpr int kResolveMsMin = 500;
// The time limit from the start of a connection to its first frame. After that the server drops the
// client and frees its memory.
constexpr int kHandshakeMsMax = 20'000;
// The maximum number of concurrent calls on one connection; the client queues further calls. A
// worker has one stream and a few calls on each connection. A client without streams has one call
// for each block of the server.
constexpr int kCallsMax = 4096;
// The most memory that a read allocates, unless gRPC knows that more bytes of the message will
// come. Several messages may share one piece of memory, which is freed with the last of them.
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
  // Fail if another server uses the port. By default both servers would share its connections.
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
  // With these experiments a read waits for all bytes that are known to come, instead of waking for
  // each piece. This saves a third of the receiver's processor time. A read also allocates only as
  // much memory as these bytes need. The alternative experiment, "read chunks", allocates twice the
  // size of the previous read, and the connection keeps these megabytes. Newer versions of gRPC do
  // not have these experiments.
  setenv("GRPC_EXPERIMENTS", kExperiments, /*replace=*/0);
  // Turn off the check for deadlocks, which the distribution's build of Abseil makes at each
  // lock of the library.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  KeepLibraryLogToErrors();
}

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           const TransportSecurity& security, Callee callee) {
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
  // Connect to the server's own address, even if the environment sets a proxy.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  auto credentials = security.ForChannel(address, callee);
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
