// Checks PEM files before use: gRPC's errors about bad files are unhelpful, and some bad files make
// it end the process.
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

// Returns the content that was checked, so that a file cannot change between check and use.
// INVALID_ARGUMENT, naming the file: it cannot be read or is not PEM of its kind; the certificate
// has expired, is not valid yet, or is not signed by one of `ca`; or `key` is not its key.
absl::StatusOr<CertificatePem> ReadCertificateFiles(const CertificatePaths& paths);
// Returns the URIs of a certificate, even if it has expired. INVALID_ARGUMENT if the file cannot be
// read.
absl::StatusOr<std::vector<std::string>> ReadUris(const std::string& certificate);

}  // namespace leeway
