// Looking at PEM files before they are used: what gRPC says of a bad one does not help, and some
// bad ones end the process.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace leeway {

// Where they are. An empty `certificate` stands for none, and so for no key.
struct CertificatePaths {
  std::string ca = {};
  std::string certificate = {};
  std::string key = {};
};

// What is in them, in PEM.
struct CertificatePem {
  std::string ca;
  std::string certificate;
  std::string key;
  // The certificate's subject alternative names of the kind URI.
  std::vector<std::string> uris = {};
  bool operator==(const CertificatePem&) const = default;
};

// What was checked, so that nothing comes between the check and the use. INVALID_ARGUMENT, naming
// the file: it cannot be read, is no PEM of its kind, the certificate has expired or is not valid
// yet, is not signed by one of `ca`, or has another key than `key`.
absl::StatusOr<CertificatePem> ReadCertificateFiles(const CertificatePaths& paths);
// The URIs of a certificate, which need not be valid any more. INVALID_ARGUMENT if it cannot be
// read.
absl::StatusOr<std::vector<std::string>> ReadUris(const std::string& certificate);

}  // namespace leeway
