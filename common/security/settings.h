// How this process proves its identity, and what it requires of others: docs/security.md.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/security/kept_certificates.h"
#include "common/security/kept_token.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// The settings as the user writes them: in flags, in the environment, in the job.
struct SecurityFlags {
  // none, tls or mtls. Empty: mtls if a certificate or a folder is given, otherwise none.
  std::string tls = {};
  // A folder with ca.crt, tls.crt and tls.key, the defaults of the next three fields.
  std::string tls_dir = {};
  std::string ca = {};
  std::string certificate = {};
  std::string key = {};
  // The trust domain whose certificates are accepted. Empty: that of the process's own certificate.
  std::string trust_domain = {};
  std::string token_file = {};
  std::string status_token_file = {};
  // The tokens themselves. Only the environment can give them, because a command line is visible to
  // all users.
  std::string token = {};
  std::string status_token = {};
};

// The settings that apply to this process.
struct SecuritySettings {
  v1::TlsMode tls = v1::TLS_MODE_NONE;
  // Null without TLS. Includes a certificate, except if the process only makes calls in mode tls.
  std::shared_ptr<const KeptCertificates> certificates;
  // The trust domain of all peers whose certificates have roles. Empty: any domain, because this
  // process's certificate has no role and the user named no domain.
  std::string trust_domain = {};
  KeptToken token = {};
  KeptToken status_token = {};
};

// `flags` take precedence over `job`. INVALID_ARGUMENT if the mode does not exist.
absl::StatusOr<v1::TlsMode> TlsModeOf(const SecurityFlags& flags, const v1::Security& job);

enum class EndOfCalls { kCalls, kAnswers };

// Each key of `flags` takes precedence over that of `job`. INVALID_ARGUMENT, naming the flag or the
// file: something is missing, cannot be read, has expired, or does not match (a key of another
// certificate). `end`: a process that answers calls needs a certificate in each mode but none; a
// process that only makes calls needs none in mode tls. From now on the files are watched.
absl::StatusOr<SecuritySettings> SettingsOf(const SecurityFlags& flags, const v1::Security& job,
                                            EndOfCalls end);

// FAILED_PRECONDITION unless each caller that can reach `listen` (host:port) has to prove its
// identity, or is on this machine, or `insecure` is set.
absl::Status CheckMayListen(const std::string& listen, v1::TlsMode tls, bool insecure);

}  // namespace leeway
