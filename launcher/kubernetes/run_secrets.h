// The keys of a run, which `leeway certificates` has written to a folder. In the cluster they are
// in Secrets.
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

  // Reads `folder`/server, `folder`/worker and `folder`/token. If a file is missing or invalid,
  // returns INVALID_ARGUMENT with the message that a process would print if it started with this
  // file.
  static absl::StatusOr<RunSecrets> Read(const std::string& folder);
  // Adds the values for the template `secrets`.
  void AddTo(TemplateValues& values) const;
};

}  // namespace leeway
