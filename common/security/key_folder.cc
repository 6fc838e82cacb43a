#include "common/security/key_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/security/certificate_authority.h"
#include "common/security/role.h"
#include "common/status.h"

namespace leeway {
namespace {

// No run takes as long.
constexpr uint32_t kRunDays = 3650;
constexpr char kMemoryFolder[] = "/dev/shm";

absl::StatusOr<std::string> MakePrivateFolder() {
  std::error_code error;
  const bool memory = access(kMemoryFolder, W_OK) == 0;
  const std::string parent =
      memory ? kMemoryFolder : std::filesystem::temp_directory_path(error).string();
  std::string path = absl::StrCat(parent, "/leeway-keys-XXXXXX");
  if (mkdtemp(path.data()) != nullptr) return path;
  return absl::UnavailableError(
      absl::StrCat("making a folder for keys, ", path, ": ", std::strerror(errno)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<KeyFolder>> KeyFolder::Make() {
  ASSIGN_OR_RETURN(std::string path, MakePrivateFolder());
  std::unique_ptr<KeyFolder> keys(new KeyFolder(std::move(path)));
  ASSIGN_OR_RETURN(const CertificateAuthority authority, CertificateAuthority::Make(kRunDays));
  for (const v1::Role role : {v1::ROLE_SERVER, v1::ROLE_WORKER, v1::ROLE_LAUNCHER}) {
    ASSIGN_OR_RETURN(
        const CertificateAndKey issued,
        authority.Issue(
            {.role = role, .hosts = {"localhost", "127.0.0.1", "::1"}, .days = kRunDays}));
    RETURN_IF_ERROR(WriteCredentials(keys->Of(role), authority.own().certificate, issued));
  }
  return keys;
}

KeyFolder::~KeyFolder() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

std::string KeyFolder::Of(v1::Role role) const { return absl::StrCat(path_, "/", RoleName(role)); }

SecuritySettings KeyFolder::SettingsFor(v1::Role role) const {
  SecuritySettings settings;
  settings.tls = v1::TLS_MODE_MTLS;
  settings.ca = absl::StrCat(Of(role), "/", kCaFile);
  settings.certificate = absl::StrCat(Of(role), "/", kCertificateFile);
  settings.key = absl::StrCat(Of(role), "/", kKeyFile);
  return settings;
}

}  // namespace leeway
