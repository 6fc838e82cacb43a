// Answers health checks by gRPC's protocol, grpc.health.v1, for orchestrators. The port is separate
// and in plain text because Kubernetes' probes do not use TLS. It answers nothing else.
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
  // `address`: HOST:PORT; port 0 means any free port. The process as a whole, service "", is
  // serving from now on. UNAVAILABLE if the port cannot listen there.
  static absl::StatusOr<std::unique_ptr<HealthPort>> Start(const std::string& address);
  // Closes the port.
  ~HealthPort();

  const std::string& address() const { return address_; }
  // Thread-safe.
  void Set(const std::string& service, bool serving);

 private:
  HealthPort();

  std::string address_;
  // Refuses all other calls. gRPC does not build a server without a service of its user.
  grpc::CallbackGenericService nothing_else_;
  // A probe connects, asks and leaves. All peers are strangers here, so the oldest connection makes
  // room.
  ConnectionTable connections_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> gate_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<TcpPort> port_;
};

// Asks the port at `address`. OK: the service is serving. UNAVAILABLE: it is not serving, or no
// answer came within `limit`. NOT_FOUND: the port does not know the service.
absl::Status CheckHealth(const std::string& address, const std::string& service, Duration limit);

}  // namespace leeway
