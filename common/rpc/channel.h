// Makes gRPC channels and servers, with one set of message sizes, keepalive times, memory limits
// and credentials.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <grpcpp/channel.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_builder.h>

#include "common/rpc/transport_security.h"

namespace leeway {

// The largest message: a block of 64 MiB and its header, with room for a model's schema.
inline constexpr int kMessageBytesMax = 72 << 20;

// Sets gRPC options that exist only for the whole process (docs/lab/performance.md). Call it once,
// at the start of a program that exchanges payloads, before any other call of gRPC. Settings in the
// environment take precedence.
void PrepareGrpc();

// Makes a channel to `address` (host:port or unix:path) with a connection of its own: several
// channels to one server are several connections. The channel connects lazily and reconnects within
// two seconds. It notices in about 30 seconds that a peer has disappeared silently.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           const TransportSecurity& security = ProcessSecurity());

// The server answers any number of pings. With a limit, gRPC 1.51 records each excess ping until it
// can close the connection, and copies all its records each time: 100,000 pings whose answers the
// client does not read keep it busy for seconds. ConnectionTable instead closes a stranger's
// connection by the bytes that it is sent.
inline constexpr int kUnlimitedPingStrikes = 0;

// Memory for messages that are partly received or not yet sent: a dozen of the largest.
inline constexpr size_t kArrivingBytes = size_t{1} << 30;

struct ListenOptions {
  // host:port, where port 0 means any free port; or unix:path.
  std::string address;
  // The limit for gRPC's memory in received and unsent messages. Beyond it gRPC chooses streams
  // and breaks them off. So the limit must exceed the budget at which the server itself refuses
  // requests (server/service/byte_budget.h).
  size_t memory_bytes = kArrivingBytes;
  // If not null, this quota is used, and the caller may raise it later. It outlives the builder.
  grpc::ResourceQuota* quota = nullptr;
  // Null means the security of the process.
  const TransportSecurity* security = nullptr;
};

// Gives `builder` the channel arguments and the port. BuildAndStart sets *port to the bound port,
// or to 0 if it cannot bind one; it then returns null. `port` must live until then.
void PrepareServer(const ListenOptions& options, grpc::ServerBuilder& builder, int* port);

// Makes the server also listen on a unix-abstract:NAME address. On a system without unix sockets
// the server then does not start.
void AddLocalPort(const std::string& address, grpc::ServerBuilder& builder);

}  // namespace leeway
