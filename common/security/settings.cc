#include "common/security/settings.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/address.h"
#include "common/security/certificate_authority.h"
#include "common/security/role.h"
#include "common/status.h"

namespace leeway {
namespace {

std::string Either(const std::string& first, const std::string& second) {
  return first.empty() ? second : first;
}

absl::StatusOr<KeptToken> TokenOf(const std::string& text, const char* variable,
                                  const std::string& file) {
  if (!file.empty()) return KeptToken::Keep(file);
  if (text.empty()) return KeptToken();
  ASSIGN_OR_RETURN(Token token, Token::Parse(text, variable));
  return token;
}

// Returns the trust domain that peers with roles in their certificates must have. `said` is the
// domain that the user set.
absl::StatusOr<std::string> PeersDomain(const std::string& said, const Caller& own,
                                        const std::string& certificate) {
  if (said.empty()) return own.trust_domain;
  RETURN_IF_ERROR(CheckTrustDomain("--trust-domain", said));
  if (own.trust_domain.empty() || own.trust_domain == said) return said;
  return absl::InvalidArgumentError(absl::StrCat("--trust-domain ", said, ": the certificate ",
                                                 certificate, " is for the trust domain '",
                                                 own.trust_domain, "'"));
}

// Returns an error if this process answers calls but its certificate has another role than server,
// because no peer would accept it.
absl::Status CheckRole(const Caller& own, EndOfCalls end, const std::string& certificate) {
  if (end == EndOfCalls::kCalls || !own.role || own.role == v1::ROLE_SERVER) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      certificate, " is ", Described(own),
      ", but a server needs a server's certificate ('leeway certificates DIR' makes DIR/server)"));
}

// Checks that the user has set all files that are needed. `proves` is true if the process has to
// prove its identity.
absl::Status CheckGiven(const CertificatePaths& paths, bool proves) {
  const char* missing = nullptr;
  if (paths.ca.empty()) missing = "--tls-ca FILE";
  if (proves && paths.key.empty()) missing = "--tls-key FILE";
  if (proves && paths.certificate.empty()) missing = "--tls-certificate FILE";
  if (missing == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("TLS also needs ", missing, " ('leeway certificates DIR' makes the files)"));
}

}  // namespace

absl::StatusOr<v1::TlsMode> TlsModeOf(const SecurityFlags& flags, const v1::Security& job) {
  if (flags.tls.empty()) {
    // In a resolved job, `none` may mean that the user did not set a mode. So a certificate takes
    // precedence over `none`.
    const bool given = !flags.certificate.empty() || !flags.tls_dir.empty();
    const bool by_files = given && job.tls().mode() == v1::TLS_MODE_NONE;
    return by_files ? v1::TLS_MODE_MTLS : job.tls().mode();
  }
  v1::TlsMode mode;
  const std::string name = absl::StrCat("TLS_MODE_", absl::AsciiStrToUpper(flags.tls));
  if (v1::TlsMode_Parse(name, &mode)) return mode;
  return absl::InvalidArgumentError(absl::StrCat("--tls ", flags.tls, ": use none, tls or mtls"));
}

absl::StatusOr<SecuritySettings> SettingsOf(const SecurityFlags& flags, const v1::Security& job,
                                            EndOfCalls end) {
  SecuritySettings settings;
  ASSIGN_OR_RETURN(settings.tls, TlsModeOf(flags, job));
  // A token in the environment takes precedence over the job's file.
  const std::string job_file = flags.token.empty() ? job.token_file() : "";
  ASSIGN_OR_RETURN(settings.token,
                   TokenOf(flags.token, "LEEWAY_TOKEN", Either(flags.token_file, job_file)));
  ASSIGN_OR_RETURN(settings.status_token,
                   TokenOf(flags.status_token, "LEEWAY_STATUS_TOKEN", flags.status_token_file));
  if (!settings.status_token.empty() && settings.token.empty() && end == EndOfCalls::kAnswers) {
    return absl::InvalidArgumentError(
        "a status token alone does not protect the other calls: also give the job a token "
        "(--token-file FILE)");
  }
  if (settings.tls == v1::TLS_MODE_NONE) return settings;
  const auto choose = [&](const std::string& flag, const char* name, const std::string& in_job) {
    const std::string in_folder = flags.tls_dir.empty() ? "" : flags.tls_dir + "/" + name;
    return Either(flag, Either(in_folder, in_job));
  };
  CertificatePaths paths = {
      .ca = choose(flags.ca, kCaFile, job.tls().ca()),
      .certificate = choose(flags.certificate, kCertificateFile, job.tls().certificate()),
      .key = choose(flags.key, kKeyFile, job.tls().key())};
  const bool proves = settings.tls == v1::TLS_MODE_MTLS || end == EndOfCalls::kAnswers;
  RETURN_IF_ERROR(CheckGiven(paths, proves));
  if (!proves) paths.certificate = paths.key = "";
  ASSIGN_OR_RETURN(settings.certificates, KeptCertificates::Start(paths));
  const Caller& own = settings.certificates->holder();
  RETURN_IF_ERROR(CheckRole(own, end, paths.certificate));
  ASSIGN_OR_RETURN(settings.trust_domain, PeersDomain(flags.trust_domain, own, paths.certificate));
  return settings;
}

absl::Status CheckMayListen(const std::string& listen, v1::TlsMode tls, bool insecure) {
  const auto address = SplitAddress(listen);
  const bool here = address.ok() && ReachOf(*address) == Reach::kOwnHost;
  if (here || insecure || tls == v1::TLS_MODE_MTLS) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "--listen ", listen,
      ": any process that reaches this address could take part in the job. Give "
      "servers and workers certificates (--tls mtls; 'leeway certificates DIR' makes them), or use "
      "--insecure if the network keeps all others out"));
}

}  // namespace leeway
