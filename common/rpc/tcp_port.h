// The TCP port of a gRPC server. gRPC 1.51 by itself takes any number of connections; and where no
// file is left for one, it never accepts another (CVE-2023-4785). So connections are accepted here,
// and handed to it.
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
  // `address`: HOST:PORT, port 0 for any free one. Connections wait from now on. UNAVAILABLE: the
  // port is taken, or the address not this machine's; for now.
  static absl::StatusOr<std::unique_ptr<TcpPort>> Listen(const std::string& address);

  int port() const { return port_; }
  // Hands over all connections that `table` lets in. `gate` is of a server that runs; it and the
  // table outlive this object, or Stop.
  absl::Status Start(grpc::experimental::ExternalConnectionAcceptor* gate, ConnectionTable* table);

 private:
  TcpPort(std::vector<Descriptor> sockets, int port) : sockets_(std::move(sockets)), port_(port) {}

  std::vector<Descriptor> sockets_;
  const int port_;
  std::unique_ptr<TalkerWatch> watch_;
  // Wakes the watch.
  std::unique_ptr<Doorway> doorway_;
  // Calls the doorway.
  std::unique_ptr<Acceptor> acceptor_;
};

// Those of the system, by the names that gRPC has for peers (grpc::ServerContext::peer).
ConnectionTable::Sockets TcpSockets();
// Empty: it has none any more.
std::string PeerOf(int socket);
// How many files this process may have open.
uint64_t FilesMost();

}  // namespace leeway
