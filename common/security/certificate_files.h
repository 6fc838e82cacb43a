// Checks PEM files before gRPC uses them, because gRPC's errors about bad files do not help a user,
// and because gRPC ends the process if certain files are bad.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace leeway {

// The paths of the files. An empty `certificate` means that there is neither a certificate nor a
// key.
struct CertificatePaths {
  std::string ca = {};
  std::string certificate = {};
  std::string key = {};
};

// The contents of the files, in PEM.
struct CertificatePem {
  std::string ca;
  std::string certificate;
  std::string key;
  // The certificate's subject alternative names of kind URI.
  std::vector<std::string> uris = {};
  bool operator==(const CertificatePem&) const = default;
};

// Checks the files and returns the content that was checked, so that a file cannot change between
// check and use. Returns INVALID_ARGUMENT, naming the file, in these cases: a file cannot be read,
// or is not PEM of its kind; the certificate has expired, is not valid yet, or is not signed by an
// authority in `ca`; `key` does not belong to the certificate.
absl::StatusOr<CertificatePem> ReadCertificateFiles(const CertificatePaths& paths);
// Returns the URIs of a certificate, even if it has expired. Returns INVALID_ARGUMENT if the file
// cannot be read.
absl::StatusOr<std::vector<std::string>> ReadUris(const std::string& certificate);

}  // namespace leeway
