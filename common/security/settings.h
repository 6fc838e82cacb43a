// How this process proves who it is, and what it asks of others: docs/security.md.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/security/kept_certificates.h"
#include "common/security/kept_token.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// As written: in flags, in the environment, in the job.
struct SecurityFlags {
  // none, tls, mtls; empty: mtls if a certificate or a folder is given, else none.
  std::string tls = {};
  // Holds ca.crt, tls.crt and tls.key, which stand behind the three below.
  std::string tls_dir = {};
  std::string ca = {};
  std::string certificate = {};
  std::string key = {};
  // Whose certificates are accepted; empty: that of the own certificate.
  std::string trust_domain = {};
  std::string token_file = {};
  std::string status_token_file = {};
  // The tokens themselves, which only the environment gives: a command line is for all to see.
  std::string token = {};
  std::string status_token = {};
};

// As it holds for this process.
struct SecuritySettings {
  v1::TlsMode tls = v1::TLS_MODE_NONE;
  // Null without TLS. With a certificate, but where a process only makes calls in mode tls.
  std::shared_ptr<const KeptCertificates> certificates;
  // Of all peers with certificates of roles; empty, where a process has no such certificate itself
  // and nobody said one: any.
  std::string trust_domain = {};
  KeptToken token = {};
  KeptToken status_token = {};
};

// `flags` go before `job`. INVALID_ARGUMENT for a mode that is none.
absl::StatusOr<v1::TlsMode> TlsModeOf(const SecurityFlags& flags, const v1::Security& job);

enum class EndOfCalls { kCalls, kAnswers };

// `job` stands behind flags and environment, each key for itself. INVALID_ARGUMENT, naming the flag
// or the file: what is missing, unreadable or does not belong together (a key of another
// certificate, one that has expired). `end`: a process that answers calls needs a certificate in
// each mode but none; in mode tls one that only makes calls needs none. The files are watched from
// now on.
absl::StatusOr<SecuritySettings> SettingsOf(const SecurityFlags& flags, const v1::Security& job,
                                            EndOfCalls end);

// FAILED_PRECONDITION unless everybody who may come to `listen` (host:port) has to prove who they
// are, or is on this machine, or `insecure`.
absl::Status CheckMayListen(const std::string& listen, v1::TlsMode tls, bool insecure);

}  // namespace leeway
