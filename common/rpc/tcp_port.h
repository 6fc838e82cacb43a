// The TCP port of a gRPC server. By itself gRPC 1.51 accepts any number of connections, and once no
// file is left for one, it never accepts another (CVE-2023-4785). So this code accepts the
// connections and hands them to gRPC.
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
  // `address`: HOST:PORT, where port 0 means any free port. From now on connections queue at the
  // port. UNAVAILABLE: the port is taken, or the address is not this machine's; either may pass.
  static absl::StatusOr<std::unique_ptr<TcpPort>> Listen(const std::string& address);

  int port() const { return port_; }
  // Hands over all connections that `table` lets in. `gate` belongs to a running server; the gate
  // and the table outlive this object.
  absl::Status Start(grpc::experimental::ExternalConnectionAcceptor* gate, ConnectionTable* table);

 private:
  TcpPort(std::vector<Descriptor> sockets, int port) : sockets_(std::move(sockets)), port_(port) {}

  std::vector<Descriptor> sockets_;
  const int port_;
  std::unique_ptr<TalkerWatch> watch_;
  // Wakes `watch_`.
  std::unique_ptr<Doorway> doorway_;
  // Calls `doorway_`.
  std::unique_ptr<Acceptor> acceptor_;
};

// The functions of the system. Peers have the names that gRPC gives them
// (grpc::ServerContext::peer).
ConnectionTable::Sockets TcpSockets();
// The name of the connection's peer; empty if the connection is gone.
std::string PeerOf(int socket);
// Raises the limit of open files to the maximum. Call it once, at the start of a program that
// listens: each connection is a file, and the usual limit is meant for programs that use select().
void AllowManyFiles();
// Turns a write to a closed connection (SIGPIPE) or beyond `ulimit -f` (SIGXFSZ) into an error that
// does not end the process. Call it once, at the start of a program that others rely on.
void SurviveWrites();
// The number of files that this process may have open.
uint64_t FilesMost();

}  // namespace leeway
