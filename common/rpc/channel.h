// Makes gRPC channels and servers. All of them have the same message sizes, keepalive times, memory
// limits and credentials.
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

// Sets the gRPC options that exist only for the whole process (docs/lab/performance.md). Call this
// function once, at the start of a program that exchanges payloads, before any other call of gRPC.
// Settings in the environment take precedence.
void PrepareGrpc();

// Makes a channel to `address` (host:port or unix:path) with a connection of its own. Two channels
// to the same server do not share a connection. The channel connects when it is first used, and
// reconnects within two seconds. It detects within about 30 seconds that a peer has disappeared
// silently.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           const TransportSecurity& security = ProcessSecurity(),
                                           Callee callee = Callee::kServer);

// Lets a client send any number of pings. With a limit, gRPC 1.51 records each excess ping until it
// can close the connection, and copies all records each time. So a client that sends 100,000 pings
// and does not read the answers would keep the server busy for seconds. ConnectionTable limits the
// pings of a stranger instead: it closes the connection if the server has sent too many bytes on
// it.
inline constexpr int kUnlimitedPingStrikes = 0;

// The memory for messages that are partly received or not yet sent. It has room for a dozen of the
// largest messages.
inline constexpr size_t kArrivingBytes = size_t{1} << 30;

struct ListenOptions {
  // host:port, where port 0 means any free port, or unix:path.
  std::string address;
  // The limit for gRPC's memory in received and unsent messages. Above this limit gRPC ends some
  // streams. So the limit must be higher than the budget at which the server itself refuses
  // requests (server/service/byte_budget.h).
  size_t memory_bytes = kArrivingBytes;
  // The quota to use, which the caller may raise later. It must outlive the builder. If null, a new
  // quota is made.
  grpc::ResourceQuota* quota = nullptr;
  // The credentials of the port. If null, those of the process are used.
  const TransportSecurity* security = nullptr;
};

// Sets the channel arguments and the port in `builder`. BuildAndStart sets *port to the bound port.
// If no port can be bound, BuildAndStart sets *port to 0 and returns null. `port` must live until
// then.
void PrepareServer(const ListenOptions& options, grpc::ServerBuilder& builder, int* port);

// Makes the server also listen on the address unix-abstract:NAME. If the operating system has no
// unix sockets, the server will not start.
void AddLocalPort(const std::string& address, grpc::ServerBuilder& builder);

}  // namespace leeway
