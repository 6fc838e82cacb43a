#include "launcher/kubernetes/run_secrets.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/security/certificate_authority.h"
#include "common/status.h"

namespace leeway {
namespace {

absl::StatusOr<CertificatePem> ReadRole(const std::string& folder) {
  return ReadCertificateFiles({.ca = absl::StrCat(folder, "/", kCaFile),
                               .certificate = absl::StrCat(folder, "/", kCertificateFile),
                               .key = absl::StrCat(folder, "/", kKeyFile)});
}

void AddRole(absl::string_view role, const CertificatePem& pem, TemplateValues& values) {
  values[absl::StrCat(role, "_ca")] = absl::Base64Escape(pem.ca);
  values[absl::StrCat(role, "_certificate")] = absl::Base64Escape(pem.certificate);
  values[absl::StrCat(role, "_key")] = absl::Base64Escape(pem.key);
}

}  // namespace

absl::StatusOr<RunSecrets> RunSecrets::Read(const std::string& folder, v1::Role worker_role) {
  RunSecrets secrets;
  ASSIGN_OR_RETURN(secrets.server, ReadRole(absl::StrCat(folder, "/server")));
  ASSIGN_OR_RETURN(secrets.worker, ReadRole(absl::StrCat(folder, "/", RoleName(worker_role))));
  ASSIGN_OR_RETURN(secrets.tokens, Token::ReadFrom(absl::StrCat(folder, "/token")));
  return secrets;
}

void RunSecrets::AddTo(TemplateValues& values) const {
  AddRole("server", server, values);
  AddRole("worker", worker, values);
  std::string lines;
  for (const Token& token : tokens) absl::StrAppend(&lines, token.text(), "\n");
  values["token"] = absl::Base64Escape(lines);
}

}  // namespace leeway
