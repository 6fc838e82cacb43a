// TLS and tokens as gRPC has them. A process has one identity, and all its channels and ports go by
// it.
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

// With mutual TLS a client accepts servers whose certificate has the role server in its own trust
// domain, under whatever name they are reached; with TLS also those whose certificate has the name
// and no role. Certificates, keys and tokens are read again when their files change; connections
// that are open stay.
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
  // `address` as channels have it. A unix socket lets in its own user only, and is plain.
  std::shared_ptr<grpc::ChannelCredentials> ForChannel(const std::string& address) const;
  std::shared_ptr<grpc::ServerCredentials> ForPort(const std::string& address) const;
  // What gives each call the token; none without one.
  Interceptors ForCalls() const;

 private:
  const SecuritySettings settings_;
  std::shared_ptr<grpc::ChannelCredentials> channel_;
  std::shared_ptr<grpc::ServerCredentials> port_;
};

// At the start of a program, before its first channel, and when its keys go: while nothing makes a
// channel or listens. Without it: plaintext, no token.
void SetProcessSecurity(SecuritySettings settings);
const TransportSecurity& ProcessSecurity();

// What the connection and the metadata of a call say of its caller. Refers to the context.
CallerFacts FactsOf(const grpc::ServerContext& context);

}  // namespace leeway
