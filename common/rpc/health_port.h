// Answers health checks of orchestrators with gRPC's protocol, grpc.health.v1. The port is separate
// and in plaintext because Kubernetes' probes do not use TLS. It answers no other calls.
// https://github.com/grpc/grpc/blob/master/doc/health-checking.md
#pragma once

#include <memory>
#include <string>

#include <grpcpp/generic/async_generic_service.h>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/rpc/connection_table.h"
#include "common/rpc/tcp_port.h"

namespace grpc {
class Server;
}

namespace leeway {

class HealthPort {
 public:
  // Listens on `address` (HOST:PORT, where port 0 means any free port). From now on the process as
  // a whole, which is the service "", is serving. Returns UNAVAILABLE if the port cannot listen
  // there.
  static absl::StatusOr<std::unique_ptr<HealthPort>> Start(const std::string& address);
  ~HealthPort();

  const std::string& address() const { return address_; }
  // Sets whether a service is serving. Thread-safe.
  void Set(const std::string& service, bool serving);

 private:
  HealthPort();

  std::string address_;
  // Refuses all other calls. This service is also needed because gRPC builds no server without a
  // service.
  grpc::CallbackGenericService nothing_else_;
  // No call is ever let in here, so all peers are strangers, and a new connection displaces the
  // oldest one. This suits probes, which connect, ask and close the connection.
  ConnectionTable connections_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> gate_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<TcpPort> port_;
};

// Asks the port at `address`. Returns OK if the service is serving. Returns UNAVAILABLE if it is
// not serving or if no answer came within `limit`. Returns NOT_FOUND if the port does not know the
// service.
absl::Status CheckHealth(const std::string& address, const std::string& service, Duration limit);

}  // namespace leeway
