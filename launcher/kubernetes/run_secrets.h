// The keys of a run, as `leeway certificates` leaves them in a folder and Secrets carry them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/security/certificate_files.h"
#include "common/security/token.h"
#include "launcher/kubernetes/template.h"

namespace leeway {

struct RunSecrets {
  CertificatePem server;
  CertificatePem worker;
  std::vector<Token> tokens;

  // `folder`/server, `folder`/worker and `folder`/token. INVALID_ARGUMENT names the file that is
  // absent or wrong, as a process that starts with it would.
  static absl::StatusOr<RunSecrets> Read(const std::string& folder);
  // For the template `secrets`.
  void AddTo(TemplateValues& values) const;
};

}  // namespace leeway
