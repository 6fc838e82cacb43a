// Admits calls, or refuses and logs them.
#pragma once

#include <string>
#include <vector>

#include <grpcpp/server_context.h>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "common/mutex.h"
#include "common/rpc/connection_table.h"
#include "common/rpc/transport_security.h"
#include "common/security/call_gate.h"

namespace leeway {

// A method of the contract, and the roles that may call it.
struct CalledMethod {
  // `name` is a full name, such as leeway.v1.Coordinator.StopJob.
  explicit CalledMethod(const std::string& name) : name(name), callers(CallersOf(name)) {}

  std::string name;
  std::vector<v1::Role> callers;
};

// Thread-safe.
class Doorkeeper {
 public:
  // Makes a doorkeeper for a server with these settings. The doorkeeper reports admitted callers to
  // `connections`, unless that is null.
  explicit Doorkeeper(const SecuritySettings& settings, ConnectionTable* connections = nullptr)
      : connections_(connections),
        gate_({.certificates = settings.tls == v1::TLS_MODE_MTLS,
               .trust_domain = settings.trust_domain,
               .token = settings.token,
               .status_token = settings.status_token}) {}

  // Returns the caller, or the error with which to answer the call (common/security/call_gate.h).
  absl::StatusOr<Caller> Admit(const grpc::ServerContext& context, const CalledMethod& method)
      EXCLUDES(mutex_);

 private:
  // Logs each reason once for each host, so that refused callers cannot fill the disk.
  void Log(const absl::Status& refusal, const std::string& host) EXCLUDES(mutex_);

  ConnectionTable* const connections_;
  const CallGate gate_;
  Mutex mutex_;
  absl::flat_hash_set<std::string> logged_ GUARDED_BY(mutex_);
};

}  // namespace leeway
