// leeway certificates: an authority for a job, and a certificate for each role.
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "common/files/private_files.h"
#include "common/security/certificate_authority.h"
#include "common/security/role.h"
#include "common/security/token.h"
#include "common/status.h"
#include "launcher/commands/command_support.h"
#include "launcher/commands/commands.h"

namespace leeway {
namespace {

constexpr uint32_t kAuthorityDays = 3650;
constexpr uint64_t kPemBytesMax = 1 << 20;
constexpr char kAuthorityKey[] = "ca.key";
constexpr char kToken[] = "token";

struct CertificatesOptions {
  std::string folder;
  std::vector<std::string> hosts;
  uint32_t days = 365;
  uint32_t ranks = 0;
};

// What is there stays: its certificates are in use.
absl::StatusOr<CertificateAuthority> TakeAuthority(const std::string& folder) {
  const std::string certificate = absl::StrCat(folder, "/", kCaFile);
  const std::string key = absl::StrCat(folder, "/", kAuthorityKey);
  if (std::filesystem::exists(certificate) || std::filesystem::exists(key)) {
    CertificateAndKey own;
    ASSIGN_OR_RETURN(own.certificate, ReadFile(certificate, kPemBytesMax));
    ASSIGN_OR_RETURN(own.key, ReadFile(key, kPemBytesMax));
    auto authority = CertificateAuthority::Load(own);
    RETURN_IF_ERROR(Annotate(authority.status(), absl::StrCat(certificate, " and ", key)));
    std::cout << "authority: that of " << certificate << "\n";
    return authority;
  }
  ASSIGN_OR_RETURN(CertificateAuthority made, CertificateAuthority::Make(kAuthorityDays));
  RETURN_IF_ERROR(WritePrivateFile(certificate, made.own().certificate));
  RETURN_IF_ERROR(WritePrivateFile(key, made.own().key));
  std::cout << "authority: " << certificate << ", its key " << key
            << " (who has the key can make certificates: keep it off the cluster)\n";
  return made;
}

absl::Status Issue(const CertificateAuthority& authority, const std::string& name,
                   const CertificateRequest& request, const std::string& folder) {
  ASSIGN_OR_RETURN(const CertificateAndKey issued, authority.Issue(request));
  const std::string place = absl::StrCat(folder, "/", name);
  RETURN_IF_ERROR(WriteCredentials(place, authority.own().certificate, issued));
  std::cout << name << ": --tls-dir " << place << "\n";
  return absl::OkStatus();
}

absl::Status MakeCertificates(const CertificatesOptions& options) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(options.folder, error);
  if (error) {
    return absl::FailedPreconditionError(absl::StrCat("the current folder: ", error.message(),
                                                      "; give the folder for the files as /..."));
  }
  const std::string folder = absolute.lexically_normal().string();
  ASSIGN_OR_RETURN(const CertificateAuthority authority, TakeAuthority(folder));
  CertificateRequest request{.hosts = {"localhost", "127.0.0.1", "::1"}, .days = options.days};
  request.hosts.insert(request.hosts.end(), options.hosts.begin(), options.hosts.end());
  for (const v1::Role role :
       {v1::ROLE_SERVER, v1::ROLE_WORKER, v1::ROLE_LAUNCHER, v1::ROLE_STATUS}) {
    request.role = role;
    RETURN_IF_ERROR(Issue(authority, RoleName(role), request, folder));
  }
  request.role = v1::ROLE_WORKER;
  for (uint32_t rank = 0; rank < options.ranks; ++rank) {
    request.rank = rank;
    RETURN_IF_ERROR(Issue(authority, absl::StrCat("worker-", rank), request, folder));
  }
  const std::string token = absl::StrCat(folder, "/", kToken);
  if (!std::filesystem::exists(token, error)) {
    ASSIGN_OR_RETURN(const Token drawn, Token::Draw());
    RETURN_IF_ERROR(WritePrivateFile(token, drawn.text() + "\n"));
  }
  std::cout << "token: --token-file " << token << "\n";
  return absl::OkStatus();
}

}  // namespace

void AddCertificatesCommand(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<CertificatesOptions>();
  CLI::App* command = app.add_subcommand(
      "certificates", "Make certificates and a token, so that a job lets in nobody else");
  command
      ->add_option("DIR", options->folder,
                   "Folder for the files; an authority that is there issues new certificates")
      ->required();
  command
      ->add_option("--hosts", options->hosts,
                   "Names and addresses of the machines, for clients other than Leeway's own")
      ->delimiter(',');
  command->add_option("--days", options->days, "How long the certificates are valid")
      ->check(CLI::Range(1, 3650))
      ->capture_default_str();
  command
      ->add_option("--ranks", options->ranks,
                   "Also make so many certificates for workers of one rank each, from 0")
      ->check(CLI::Range(0, 10000));
  command->callback([options, &exit_code] { exit_code = ShowResult(MakeCertificates(*options)); });
}

}  // namespace leeway
