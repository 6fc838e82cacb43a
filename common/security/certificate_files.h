// Looking at PEM files before they are used: what gRPC says of a bad one does not help.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace leeway {

// INVALID_ARGUMENT, naming the file: it cannot be read, is no PEM of its kind, the certificate has
// expired or is not valid yet, is not signed by one of `ca`, or has another key than `key`. An
// empty `certificate` stands for none.
absl::Status CheckCertificateFiles(const std::string& ca, const std::string& certificate,
                                   const std::string& key);

}  // namespace leeway
