// How this process proves its identity, and which proofs it requires from other processes.
// docs/security.md is the guide for users.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/security/kept_certificates.h"
#include "common/security/kept_token.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// The settings as the user writes them, in flags and in the environment.
struct SecurityFlags {
  // The mode: none, tls or mtls. If empty, the job sets the mode. If the job's mode is `none` and
  // these flags name a certificate or a folder, the mode is mtls.
  std::string tls = {};
  // A folder with ca.crt, tls.crt and tls.key, which are the defaults of the next three fields.
  std::string tls_dir = {};
  std::string ca = {};
  std::string certificate = {};
  std::string key = {};
  // The trust domain whose certificates are accepted. If empty, it is that of the process's own
  // certificate.
  std::string trust_domain = {};
  std::string token_file = {};
  std::string status_token_file = {};
  // The tokens themselves. They can be set only in the environment, because a command line is
  // visible to all users.
  std::string token = {};
  std::string status_token = {};
};

// The settings that apply to this process.
struct SecuritySettings {
  v1::TlsMode tls = v1::TLS_MODE_NONE;
  // Null without TLS. In mode tls, a process that only makes calls has the authorities here but no
  // certificate.
  std::shared_ptr<const KeptCertificates> certificates;
  // The trust domain that peers must have if their certificates have roles. If empty, any domain is
  // accepted, because this process's certificate has no role and the user set no domain.
  std::string trust_domain = {};
  KeptToken token = {};
  KeptToken status_token = {};
};

// Returns the mode. `flags` take precedence over `job`. Returns INVALID_ARGUMENT if the mode does
// not exist.
absl::StatusOr<v1::TlsMode> TlsModeOf(const SecurityFlags& flags, const v1::Security& job);

enum class EndOfCalls { kCalls, kAnswers };

// Reads the files and returns the settings. From now on the files are watched. Each setting in
// `flags` takes precedence over that in `job`. `end` tells whether the process answers calls. If
// so, it needs a certificate in the modes tls and mtls, otherwise only in mode mtls. Returns
// INVALID_ARGUMENT, naming the flag or the file, if a file is missing, cannot be read, has expired,
// or does not match the others (such as the key of another certificate).
absl::StatusOr<SecuritySettings> SettingsOf(const SecurityFlags& flags, const v1::Security& job,
                                            EndOfCalls end);

// Returns OK if `insecure` is true, or if all callers that can reach `listen` (host:port) are on
// this machine or must prove their identity. Otherwise returns FAILED_PRECONDITION.
absl::Status CheckMayListen(const std::string& listen, v1::TlsMode tls, bool insecure);

}  // namespace leeway
