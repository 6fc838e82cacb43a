// Makes the certificates of a job: an authority of its own, and a certificate for each role, whose
// files processes then name (docs/security.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/security/openssl.h"
#include "common/security/role.h"
#include "leeway/v1/options.pb.h"

namespace leeway {

// PEM.
struct CertificateAndKey {
  std::string certificate;
  std::string key;
};

struct CertificateRequest {
  v1::Role role = v1::ROLE_UNSPECIFIED;
  // Of a worker: it may have this rank only.
  std::optional<uint32_t> rank = std::nullopt;
  // It must be one (role.h).
  std::string trust_domain = kTrustDomain;
  // Names and addresses by which others reach the process. Leeway's own programs go by the role
  // instead; those of others compare the name.
  std::vector<std::string> hosts = {};
  uint32_t days = 365;
};

// Keys are of the curve P-256, signatures with SHA-256.
class CertificateAuthority {
 public:
  static absl::StatusOr<CertificateAuthority> Make(uint32_t days);
  // INVALID_ARGUMENT if they are no certificate and its key.
  static absl::StatusOr<CertificateAuthority> Load(const CertificateAndKey& own);

  // PEM.
  const CertificateAndKey& own() const { return own_; }
  // With a key of its own. INVALID_ARGUMENT for a host that is neither a name nor an address.
  absl::StatusOr<CertificateAndKey> Issue(const CertificateRequest& request) const;

 private:
  CertificateAuthority(CertificateAndKey own, CertificatePtr certificate, KeyPtr key)
      : own_(std::move(own)), certificate_(std::move(certificate)), key_(std::move(key)) {}

  CertificateAndKey own_;
  CertificatePtr certificate_;
  KeyPtr key_;
};

// The files of one process in a folder, under the names that Kubernetes' secrets have.
inline constexpr char kCaFile[] = "ca.crt";
inline constexpr char kCertificateFile[] = "tls.crt";
inline constexpr char kKeyFile[] = "tls.key";

// Writes them there: folders 0700, files 0600. A file that is there is replaced whole.
absl::Status WriteCredentials(const std::string& folder, const std::string& ca_certificate,
                              const CertificateAndKey& issued);

}  // namespace leeway
