// How gRPC channels and servers are made: message sizes, keepalive, memory, credentials, in one
// place.
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

// The largest block (64 MiB) and its header, with room for a model's schema.
inline constexpr int kMessageBytesMax = 72 << 20;

// Once, at the start of a program that exchanges payloads, before anything else of gRPC: settings
// of the library's that only the process has (docs/lab/performance.md). The environment's own go
// before.
void PrepareGrpc();

// A connection of its own to `address` (host:port or unix:path), not shared with other channels of
// the process: several channels to one server are several connections. Connects lazily and
// reconnects within two seconds; a peer that is silently gone is noticed in about 30 seconds.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           const TransportSecurity& security = ProcessSecurity());

// Pings are answered, however many. gRPC 1.51 takes note of each one that is too many until it
// could close the connection, and copies all its notes each time: 100,000 pings whose answers
// nobody reads keep it busy for seconds. A ConnectionTable closes strangers' connections by what
// they are sent.
inline constexpr int kUnlimitedPingStrikes = 0;

// Of messages that have not arrived whole, or have not left: a dozen of the largest.
inline constexpr size_t kArrivingBytes = size_t{1} << 30;

struct ListenOptions {
  // host:port, port 0 for any free one; or unix:path.
  std::string address;
  // What gRPC may hold in received and unsent messages, in all: beyond it breaks off streams, its
  // own choice which, so it is to be more than what the server refuses beyond
  // (server/service/byte_budget.h).
  size_t memory_bytes = kArrivingBytes;
  // Not null: the same, which may be made larger later. Outlives the builder.
  grpc::ResourceQuota* quota = nullptr;
  // Null: the process's.
  const TransportSecurity* security = nullptr;
};

// Gives `builder` the arguments and the port. After BuildAndStart, *port is the one bound, 0 if
// none could be (BuildAndStart then returns null). `port` must live until then.
void PrepareServer(const ListenOptions& options, grpc::ServerBuilder& builder, int* port);

// Makes the server listen on a unix-abstract:NAME, too. A system without unix sockets does not
// start a server that was asked for this.
void AddLocalPort(const std::string& address, grpc::ServerBuilder& builder);

}  // namespace leeway
