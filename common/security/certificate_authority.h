// Makes the certificates of a job: an authority for this job, and a certificate for each role
// (docs/security.md).
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

// A certificate and its key, both in PEM.
struct CertificateAndKey {
  std::string certificate;
  std::string key;
};

struct CertificateRequest {
  v1::Role role = v1::ROLE_UNSPECIFIED;
  // If set, a worker with this certificate may have only this rank.
  std::optional<uint32_t> rank = std::nullopt;
  // Must be a valid trust domain (role.h).
  std::string trust_domain = kTrustDomain;
  // The host names and addresses at which other processes reach this process. Leeway's own programs
  // check the role and ignore these. Other programs check the name.
  std::vector<std::string> hosts = {};
  uint32_t days = 365;
};

// Keys use the curve P-256, and signatures SHA-256.
class CertificateAuthority {
 public:
  static absl::StatusOr<CertificateAuthority> Make(uint32_t days);
  // Returns INVALID_ARGUMENT unless `own` is a certificate and its key.
  static absl::StatusOr<CertificateAuthority> Load(const CertificateAndKey& own);

  // The authority's certificate and key, in PEM.
  const CertificateAndKey& own() const { return own_; }
  // Issues a certificate with a new key. Returns INVALID_ARGUMENT if a host is neither a name nor
  // an address.
  absl::StatusOr<CertificateAndKey> Issue(const CertificateRequest& request) const;

 private:
  CertificateAuthority(CertificateAndKey own, CertificatePtr certificate, KeyPtr key)
      : own_(std::move(own)), certificate_(std::move(certificate)), key_(std::move(key)) {}

  CertificateAndKey own_;
  CertificatePtr certificate_;
  KeyPtr key_;
};

// The names of a process's files in a folder. Kubernetes' secrets use the same names.
inline constexpr char kCaFile[] = "ca.crt";
inline constexpr char kCertificateFile[] = "tls.crt";
inline constexpr char kKeyFile[] = "tls.key";

// Writes the three files into `folder`, with mode 0600. New folders get mode 0700. An existing file
// is replaced atomically.
absl::Status WriteCredentials(const std::string& folder, const std::string& ca_certificate,
                              const CertificateAndKey& issued);

}  // namespace leeway
