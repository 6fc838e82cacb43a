#include "common/rpc/transport_security.h"

#include <functional>
#include <utility>

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace leeway {
namespace {

namespace tls = grpc::experimental;

// The time between two checks of the certificates by gRPC. The checks are cheap, because the files
// are in memory.
constexpr unsigned kLookAtFilesSeconds = 1;
constexpr char kAuthorization[] = "authorization";

bool IsUnixSocket(const std::string& address) { return absl::StartsWith(address, "unix"); }

// Verifies the role, trust domain and name in a server's certificate. gRPC verifies the signature.
class ServerVerifier : public tls::ExternalCertificateVerifier {
 public:
  // If `by_name` is true, a certificate without a role must have the host name of the address;
  // otherwise it is refused. A certificate with a role must be for `trust_domain`, or for any
  // domain if `trust_domain` is empty.
  ServerVerifier(Callee callee, bool by_name, std::string trust_domain)
      : callee_(callee), by_name_(by_name), trust_domain_(std::move(trust_domain)) {}

  bool Verify(tls::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)> callback, grpc::Status* status) override {
    std::vector<std::string> uris;
    for (const grpc::string_ref& uri : request->uri_names()) {
      uris.emplace_back(uri.data(), uri.size());
    }
    const auto peer = CallerOf(uris);
    if (!peer && by_name_) return names_.Verify(request, std::move(callback), status);
    if (!peer || !IsCallee(*peer->role)) {
      Refuse(peer ? absl::StrCat("a ", RoleName(*peer->role), "'s, not a server's")
                  : "without a role; it must be a server's",
             status);
    } else if (!trust_domain_.empty() && peer->trust_domain != trust_domain_) {
      Refuse(absl::StrCat("for the trust domain '", peer->trust_domain, "', not for '",
                          trust_domain_, "' (--trust-domain)"),
             status);
    }
    return true;
  }
  void Cancel(tls::TlsCustomVerificationCheckRequest*) override {}

 private:
  bool IsCallee(v1::Role role) const {
    return role == v1::ROLE_SERVER || (role == v1::ROLE_PEER && callee_ == Callee::kHolder);
  }
  static void Refuse(const std::string& what, grpc::Status* status) {
    *status = grpc::Status(grpc::StatusCode::UNAUTHENTICATED,
                           absl::StrCat("the certificate at this address is ", what));
  }

  const Callee callee_;
  const bool by_name_;
  const std::string trust_domain_;
  tls::HostNameCertificateVerifier names_;
};

// Makes gRPC watch the certificates of `kept`, which have passed the checks (KeptCertificates).
// gRPC must not watch the user's files itself. It ends the process if a file is empty, and refuses
// all connections if a key does not match its certificate.
std::shared_ptr<tls::CertificateProviderInterface> Watch(const KeptCertificates& kept) {
  if (kept.identity_file().empty()) {
    return std::make_shared<tls::FileWatcherCertificateProvider>(kept.ca_file(),
                                                                 kLookAtFilesSeconds);
  }
  return std::make_shared<tls::FileWatcherCertificateProvider>(
      kept.identity_file(), kept.identity_file(), kept.ca_file(), kLookAtFilesSeconds);
}

std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials(
    const SecuritySettings& settings,
    const std::shared_ptr<tls::CertificateProviderInterface>& provider, Callee callee) {
  const bool mutual = settings.tls == v1::TLS_MODE_MTLS;
  tls::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(provider);
  options.watch_root_certs();
  if (mutual) options.watch_identity_key_cert_pairs();
  options.set_verify_server_certs(true);
  // gRPC need not check the name, because ServerVerifier does so where that is necessary.
  options.set_check_call_host(false);
  options.set_certificate_verifier(tls::ExternalCertificateVerifier::Create<ServerVerifier>(
      callee, /*by_name=*/!mutual, settings.trust_domain));
  return tls::TlsCredentials(options);
}

std::shared_ptr<grpc::ServerCredentials> MakePortCredentials(
    const SecuritySettings& settings,
    const std::shared_ptr<tls::CertificateProviderInterface>& provider) {
  tls::TlsServerCredentialsOptions options(provider);
  options.watch_identity_key_cert_pairs();
  options.watch_root_certs();
  options.set_cert_request_type(settings.tls == v1::TLS_MODE_MTLS
                                    ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                                    : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  // The server checks the role at each call and not here, because the refusal of a call can state
  // the reason.
  options.set_certificate_verifier(std::make_shared<tls::NoOpCertificateVerifier>());
  return tls::TlsServerCredentials(options);
}

class TokenInterceptor : public grpc::experimental::Interceptor {
 public:
  explicit TokenInterceptor(const KeptToken& token) : token_(token) {}
  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    using Point = grpc::experimental::InterceptionHookPoints;
    if (methods->QueryInterceptionHookPoint(Point::PRE_SEND_INITIAL_METADATA)) {
      methods->GetSendInitialMetadata()->emplace(kAuthorization, token_.Authorization());
    }
    methods->Proceed();
  }

 private:
  const KeptToken& token_;
};

class TokenInterceptors : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  explicit TokenInterceptors(KeptToken token) : token_(std::move(token)) {}
  grpc::experimental::Interceptor* CreateClientInterceptor(
      grpc::experimental::ClientRpcInfo*) override {
    return new TokenInterceptor(token_);
  }

 private:
  const KeptToken token_;
};

// Returns the security of the process. The object is never destroyed at exit, because threads may
// make channels until the process ends.
std::unique_ptr<const TransportSecurity>& OfProcess() {
  static auto* security = new std::unique_ptr<const TransportSecurity>(new TransportSecurity());
  return *security;
}

}  // namespace

TransportSecurity::TransportSecurity(SecuritySettings settings) : settings_(std::move(settings)) {
  if (settings_.tls == v1::TLS_MODE_NONE) return;
  const auto provider = Watch(*settings_.certificates);
  to_server_ = MakeChannelCredentials(settings_, provider, Callee::kServer);
  to_holder_ = MakeChannelCredentials(settings_, provider, Callee::kHolder);
  if (!settings_.certificates->identity_file().empty())
    port_ = MakePortCredentials(settings_, provider);
}

std::shared_ptr<grpc::ChannelCredentials> TransportSecurity::ForChannel(const std::string& address,
                                                                        Callee callee) const {
  if (to_server_ == nullptr || IsUnixSocket(address)) return grpc::InsecureChannelCredentials();
  return callee == Callee::kHolder ? to_holder_ : to_server_;
}

std::shared_ptr<grpc::ServerCredentials> TransportSecurity::ForPort(
    const std::string& address) const {
  if (port_ == nullptr || IsUnixSocket(address)) return grpc::InsecureServerCredentials();
  return port_;
}

TransportSecurity::Interceptors TransportSecurity::ForCalls() const {
  Interceptors interceptors;
  if (!settings_.token.empty()) {
    interceptors.push_back(std::make_unique<TokenInterceptors>(settings_.token));
  }
  return interceptors;
}

void SetProcessSecurity(SecuritySettings settings) {
  OfProcess() = std::make_unique<TransportSecurity>(std::move(settings));
}

const TransportSecurity& ProcessSecurity() { return *OfProcess(); }

CallerFacts FactsOf(const grpc::ServerContext& context) {
  CallerFacts facts;
  facts.local = !absl::StartsWith(context.peer(), "ipv");
  const auto found = context.client_metadata().find(kAuthorization);
  if (found != context.client_metadata().end()) {
    facts.authorization = {found->second.data(), found->second.size()};
  }
  const auto proved = context.auth_context();
  if (proved == nullptr) return facts;
  for (const grpc::string_ref& uri : proved->FindPropertyValues(GRPC_PEER_URI_PROPERTY_NAME)) {
    facts.uris.emplace_back(uri.data(), uri.size());
  }
  return facts;
}

}  // namespace leeway
