// leeway certificates: makes an authority for a job, and a certificate for each role.
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
#include "common/security/certificate_files.h"
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

constexpr v1::Role kIssued[] = {v1::ROLE_SERVER, v1::ROLE_WORKER, v1::ROLE_LAUNCHER,
                                v1::ROLE_STATUS, v1::ROLE_PEER};

struct CertificatesOptions {
  std::string folder;
  std::vector<std::string> hosts;
  uint32_t days = 365;
  uint32_t ranks = 0;
  std::string trust_domain;
  // The folder of the authority. If empty, it is `folder`.
  std::string authority;
  bool keeps_authority = true;
};

absl::StatusOr<std::string> Absolute(const std::string& folder) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(folder, error);
  if (!error) return absolute.lexically_normal().string();
  return absl::FailedPreconditionError(
      absl::StrCat("the current folder: ", error.message(),
                   "; give an absolute path for the folder of the files"));
}

// Returns the trust domain for new certificates in `folder`. It is the domain of the existing
// certificates in the folder, otherwise `said`, otherwise the default. Returns INVALID_ARGUMENT if
// `said` differs from the existing domain, whose processes would refuse the new certificates.
absl::StatusOr<std::string> TrustDomainFor(const std::string& folder, const std::string& said) {
  for (const v1::Role role : kIssued) {
    const std::string file = absl::StrCat(folder, "/", RoleName(role), "/", kCertificateFile);
    const auto uris = ReadUris(file);
    const auto holder = uris.ok() ? CallerOf(*uris) : std::nullopt;
    const std::string domain = holder ? holder->trust_domain : "";
    if (domain.empty()) continue;
    if (said.empty() || said == domain) return domain;
    return absl::InvalidArgumentError(
        absl::StrCat("--trust-domain ", said, ": ", file, " is for the trust domain '", domain,
                     "', and processes with that certificate would refuse the new certificates: "
                     "use another folder"));
  }
  if (said.empty()) return kTrustDomain;
  RETURN_IF_ERROR(CheckTrustDomain("--trust-domain", said));
  return said;
}

// Loads an authority that exists. It is never replaced, because its certificates are in use.
absl::StatusOr<CertificateAuthority> LoadAuthority(const std::string& certificate,
                                                   const std::string& key) {
  if (!std::filesystem::exists(key)) {
    return absl::InvalidArgumentError(
        absl::StrCat(key,
                     " is missing, so this authority can issue no more certificates. Use another "
                     "folder, and give all processes certificates of the new authority"));
  }
  CertificateAndKey own;
  ASSIGN_OR_RETURN(own.certificate, ReadFile(certificate, kPemBytesMax));
  ASSIGN_OR_RETURN(own.key, ReadFile(key, kPemBytesMax));
  auto authority = CertificateAuthority::Load(own);
  RETURN_IF_ERROR(Annotate(authority.status(), absl::StrCat(certificate, " and ", key)));
  std::cout << "authority: that of " << certificate << "\n";
  return authority;
}

absl::StatusOr<CertificateAuthority> TakeAuthority(const std::string& folder, bool keeps) {
  const std::string certificate = absl::StrCat(folder, "/", kCaFile);
  const std::string key = absl::StrCat(folder, "/", kAuthorityKey);
  if (std::filesystem::exists(certificate) || std::filesystem::exists(key)) {
    return LoadAuthority(certificate, key);
  }
  ASSIGN_OR_RETURN(CertificateAuthority made, CertificateAuthority::Make(kAuthorityDays));
  RETURN_IF_ERROR(WritePrivateFile(certificate, made.own().certificate));
  if (!keeps) {
    std::cout << "authority: " << certificate
              << ", whose key was not kept: it can issue no more certificates\n";
    return made;
  }
  RETURN_IF_ERROR(WritePrivateFile(key, made.own().key));
  std::cout << "authority: " << certificate << ", its key " << key
            << " (anyone with the key can make certificates: keep the key off the cluster)\n";
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

absl::Status IssueAll(const CertificateAuthority& authority, CertificateRequest request,
                      const std::string& folder, uint32_t ranks) {
  for (const v1::Role role : kIssued) {
    request.role = role;
    RETURN_IF_ERROR(Issue(authority, RoleName(role), request, folder));
  }
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    request.rank = rank;
    for (const v1::Role role : {v1::ROLE_WORKER, v1::ROLE_PEER}) {
      request.role = role;
      RETURN_IF_ERROR(Issue(authority, absl::StrCat(RoleName(role), "-", rank), request, folder));
    }
  }
  return absl::OkStatus();
}

absl::Status MakeCertificates(const CertificatesOptions& options) {
  ASSIGN_OR_RETURN(const std::string folder, Absolute(options.folder));
  ASSIGN_OR_RETURN(const std::string authority_folder,
                   Absolute(options.authority.empty() ? options.folder : options.authority));
  CertificateRequest request{.hosts = {"localhost", "127.0.0.1", "::1"}, .days = options.days};
  ASSIGN_OR_RETURN(request.trust_domain, TrustDomainFor(folder, options.trust_domain));
  request.hosts.insert(request.hosts.end(), options.hosts.begin(), options.hosts.end());
  ASSIGN_OR_RETURN(const CertificateAuthority authority,
                   TakeAuthority(authority_folder, options.keeps_authority));
  RETURN_IF_ERROR(IssueAll(authority, request, folder, options.ranks));
  const std::string token = absl::StrCat(folder, "/", kToken);
  if (std::error_code error; !std::filesystem::exists(token, error)) {
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
      "certificates", "Make certificates and a token, so that nobody else can take part in a job");
  command
      ->add_option("DIR", options->folder,
                   "Folder for the files; an authority in this folder issues the certificates")
      ->required();
  command
      ->add_option("--hosts", options->hosts,
                   "Names and addresses of the machines, for clients other than Leeway's own")
      ->delimiter(',');
  command->add_option("--days", options->days, "How long the certificates are valid")
      ->check(CLI::Range(1, 3650))
      ->capture_default_str();
  command
      ->add_option(
          "--ranks", options->ranks,
          "Also make certificates for single ranks: workers and peers with ranks below this number")
      ->check(CLI::Range(0, 10000));
  command->add_option("--trust-domain", options->trust_domain,
                      "Trust domain of the certificates; jobs that share an authority need "
                      "different ones (default: that of the certificates in DIR, or leeway)");
  CLI::Option* authority =
      command->add_option("--authority", options->authority,
                          "Folder of the authority; a missing authority is made (default: DIR)");
  command
      ->add_flag("!--no-keep-authority", options->keeps_authority,
                 "Do not keep the authority's key; it can then issue no more certificates")
      ->excludes(authority);
  command->callback([options, &exit_code] { exit_code = ShowResult(MakeCertificates(*options)); });
}

}  // namespace leeway
