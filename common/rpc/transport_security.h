// TLS and tokens for gRPC. A process has one identity, which all its channels and ports use.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/client_interceptor.h>

#include "common/security/call_gate.h"
#include "common/security/settings.h"

namespace leeway {

// The kind of process to which a channel leads.
enum class Callee {
  // A server, such as the coordinator.
  kServer,
  // A process that holds blocks: a server, or a worker as a peer.
  kHolder,
};

// With mutual TLS a client accepts a server whose certificate has the role server in the client's
// own trust domain, whatever its host name is. A holder of blocks may also have the role peer. With
// plain TLS a client also accepts a certificate without a role if it has the server's host name.
// Certificates, keys and tokens are read again when their files change. Connections that are open
// stay open.
//
// Thread-safe.
class TransportSecurity {
 public:
  using Interceptors =
      std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>>;

  // Plaintext, without a token.
  TransportSecurity() : TransportSecurity(SecuritySettings()) {}
  explicit TransportSecurity(SecuritySettings settings);

  const SecuritySettings& settings() const { return settings_; }
  // Return the credentials for a channel to `address`, and for a port on it. `address` has the
  // form of MakeChannel. A unix socket is in plaintext, because it admits only processes of its
  // own user.
  std::shared_ptr<grpc::ChannelCredentials> ForChannel(const std::string& address,
                                                       Callee callee) const;
  std::shared_ptr<grpc::ServerCredentials> ForPort(const std::string& address) const;
  // Returns the interceptors that add the token to each call. The result is empty if there is no
  // token.
  Interceptors ForCalls() const;

 private:
  const SecuritySettings settings_;
  // The channel credentials for each callee. Null without TLS.
  std::shared_ptr<grpc::ChannelCredentials> to_server_;
  std::shared_ptr<grpc::ChannelCredentials> to_holder_;
  std::shared_ptr<grpc::ServerCredentials> port_;
};

// Sets the security of this process. Call this function at the start of a program, before its first
// channel, and again when its keys are removed. No thread may make a channel or a port during the
// call. The default is plaintext without a token.
void SetProcessSecurity(SecuritySettings settings);
const TransportSecurity& ProcessSecurity();

// Returns what the connection and the metadata of a call prove about the caller. The result refers
// to `context`, which must outlive it.
CallerFacts FactsOf(const grpc::ServerContext& context);

}  // namespace leeway
