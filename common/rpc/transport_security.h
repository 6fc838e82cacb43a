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

// With mutual TLS a client accepts a server whose certificate has the role server in the client's
// own trust domain, under any host name. With plain TLS it also accepts a certificate without a
// role that carries the host name. Certificates, keys and tokens are read again when their files
// change; open connections stay.
//
// Thread-safe.
class TransportSecurity {
 public:
  using Interceptors =
      std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>>;

  // Plaintext, no token.
  TransportSecurity() : TransportSecurity(SecuritySettings()) {}
  explicit TransportSecurity(SecuritySettings settings);

  const SecuritySettings& settings() const { return settings_; }
  // `address` is in the form that channels use. A unix socket is plaintext, and lets in its own
  // user only.
  std::shared_ptr<grpc::ChannelCredentials> ForChannel(const std::string& address) const;
  std::shared_ptr<grpc::ServerCredentials> ForPort(const std::string& address) const;
  // Interceptors that add the token to each call; empty without a token.
  Interceptors ForCalls() const;

 private:
  const SecuritySettings settings_;
  std::shared_ptr<grpc::ChannelCredentials> channel_;
  std::shared_ptr<grpc::ServerCredentials> port_;
};

// Sets the security of this process. Call it at the start of a program, before its first channel,
// and again when its keys are removed, while nothing makes a channel or listens. Default:
// plaintext, no token.
void SetProcessSecurity(SecuritySettings settings);
const TransportSecurity& ProcessSecurity();

// Returns what the connection and the metadata of a call prove about its caller. The result refers
// to the context.
CallerFacts FactsOf(const grpc::ServerContext& context);

}  // namespace leeway
