// The TCP port and, for processes of this host, the abstract unix socket at which a server accepts
// calls. Also limits connections and memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <grpcpp/resource_quota.h>
#include <grpcpp/server_builder.h>

#include "absl/status/statusor.h"
#include "common/rpc/connection_table.h"
#include "common/rpc/local_listener.h"
#include "common/rpc/tcp_port.h"
#include "common/rpc/transport_security.h"
#include "common/service/connection_guard.h"
#include "common/service/doorkeeper.h"
#include "common/service/server_queue.h"

namespace leeway {

// A process may have several ports.
class ServerPort {
 public:
  // Services that are served together. They must outlive the port.
  struct Services {
    // Adds the services to the gRPC server.
    std::function<void(grpc::ServerBuilder&)> add;
    // Accepts calls on the queue from now on.
    std::function<void(ServerQueue*)> await;
    // Answers all waiting requests, because gRPC's server does not end before its calls have ended.
    std::function<void()> close = [] {};
  };

  // Serves at `listen` (HOST:PORT, where port 0 means any free port).
  static absl::StatusOr<std::unique_ptr<ServerPort>> Open(const std::string& listen,
                                                          const TransportSecurity& security,
                                                          std::vector<Services> services);
  ~ServerPort();

  int port() const { return tcp_->port(); }
  // The address unix-abstract:NAME for processes of this host. Empty if the server does not listen
  // there; those processes then use TCP.
  const std::string& local_address() const { return local_address_; }
  // Raises the limits for the job's connections, and for this number of bytes of received
  // contributions. Before this call the limits suffice only for connections that do not belong to
  // the job.
  void MakeRoom(uint64_t connections_of_job, uint64_t received_bytes);

 private:
  ServerPort(const TransportSecurity& security, std::vector<Services> services);
  absl::Status Start(const std::string& listen, const TransportSecurity& security);
  void ListenLocally();

  const std::vector<Services> services_;
  std::string local_address_;
  // These members are in the order of construction, so that the tables outlive the gRPC server. The
  // destructor ends the queue once the gRPC server has shut down.
  grpc::ResourceQuota quota_{"leeway"};
  ConnectionTable connections_;
  Doorkeeper doorkeeper_;
  std::unique_ptr<ServerQueue> queue_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> gate_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<TcpPort> tcp_;
  std::unique_ptr<LocalListener> local_;
  std::unique_ptr<ConnectionGuard> guard_;
};

}  // namespace leeway
