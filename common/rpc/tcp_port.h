// The TCP port of a gRPC server. This code accepts the connections and passes them to gRPC. gRPC
// 1.51 itself would accept any number of connections, and would stop accepting for good once the
// process can open no more files (CVE-2023-4785).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <grpcpp/server_builder.h>

#include "absl/status/statusor.h"
#include "common/descriptor.h"
#include "common/rpc/acceptor.h"
#include "common/rpc/connection_table.h"
#include "common/rpc/doorway.h"
#include "common/rpc/talker_watch.h"

namespace leeway {

class TcpPort {
 public:
  // Listens on `address` (HOST:PORT, where port 0 means any free port). From now on connections
  // queue at the port. Returns UNAVAILABLE if the port is taken or the address is not this
  // machine's. Both may be temporary.
  static absl::StatusOr<std::unique_ptr<TcpPort>> Listen(const std::string& address);

  int port() const { return port_; }
  // Passes all connections that `table` admits to `gate`, which belongs to a running server. The
  // gate and the table must outlive this object.
  absl::Status Start(grpc::experimental::ExternalConnectionAcceptor* gate, ConnectionTable* table);

 private:
  TcpPort(std::vector<Descriptor> sockets, int port) : sockets_(std::move(sockets)), port_(port) {}

  std::vector<Descriptor> sockets_;
  const int port_;
  std::unique_ptr<TalkerWatch> watch_;
  // Declared after `watch_`, because it wakes `watch_`.
  std::unique_ptr<Doorway> doorway_;
  // Declared after `doorway_`, because it calls `doorway_`.
  std::unique_ptr<Acceptor> acceptor_;
};

// Returns the operating system's functions for a ConnectionTable of TCP connections. Peers are
// named as gRPC names them (grpc::ServerContext::peer).
ConnectionTable::Sockets TcpSockets();
// Returns the name of the connection's peer, or an empty string if the connection is gone.
std::string PeerOf(int socket);
// Returns how many files this process may have open.
uint64_t FilesMost();

}  // namespace leeway
