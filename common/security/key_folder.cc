#include "common/security/key_folder.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/security/certificate_authority.h"
#include "common/security/role.h"
#include "common/status.h"

namespace leeway {
namespace {

// The validity of the certificates, which is longer than any run.
constexpr uint32_t kRunDays = 3650;
}  // namespace

std::string WarningOfKeys(const TemporaryFolder& folder) {
  if (folder.why_on_disk().empty()) return "";
  return absl::StrCat("the keys of this run are on disk, in ", folder.path(),
                      ", until the run ends, because they could not be kept in memory (",
                      folder.why_on_disk(), ")");
}

absl::StatusOr<std::unique_ptr<KeyFolder>> KeyFolder::Make() {
  ASSIGN_OR_RETURN(auto folder, TemporaryFolder::Make("leeway-keys", TemporaryIn::kMemory));
  std::unique_ptr<KeyFolder> keys(new KeyFolder(std::move(folder)));
  ASSIGN_OR_RETURN(const CertificateAuthority authority, CertificateAuthority::Make(kRunDays));
  for (const v1::Role role : {v1::ROLE_SERVER, v1::ROLE_WORKER, v1::ROLE_LAUNCHER, v1::ROLE_PEER}) {
    ASSIGN_OR_RETURN(
        const CertificateAndKey issued,
        authority.Issue(
            {.role = role, .hosts = {"localhost", "127.0.0.1", "::1"}, .days = kRunDays}));
    RETURN_IF_ERROR(WriteCredentials(keys->Of(role), authority.own().certificate, issued));
  }
  return keys;
}

std::string KeyFolder::Warning() const { return WarningOfKeys(*folder_); }

std::string KeyFolder::Of(v1::Role role) const {
  return absl::StrCat(folder_->path(), "/", RoleName(role));
}

absl::StatusOr<SecuritySettings> KeyFolder::SettingsFor(v1::Role role) const {
  return SettingsOf({.tls = "mtls", .tls_dir = Of(role)}, {}, EndOfCalls::kCalls);
}

}  // namespace leeway
