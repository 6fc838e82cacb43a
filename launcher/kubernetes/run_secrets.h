// The keys of a run: in a folder by `leeway certificates`, and in the cluster's Secrets.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/security/certificate_files.h"
#include "common/security/role.h"
#include "common/security/token.h"
#include "launcher/kubernetes/template.h"

namespace leeway {

struct RunSecrets {
  CertificatePem server;
  // The certificate of the workers' role, which is `peer` if they hold the blocks.
  CertificatePem worker;
  std::vector<Token> tokens;

  // Reads `folder`/server, `folder`/token, and the folder of the workers' role. Returns
  // INVALID_ARGUMENT if a file is missing or invalid. The message is that of a process that starts
  // with this file.
  static absl::StatusOr<RunSecrets> Read(const std::string& folder, v1::Role worker_role);
  // Adds the values for the template `secrets`.
  void AddTo(TemplateValues& values) const;
};

}  // namespace leeway
