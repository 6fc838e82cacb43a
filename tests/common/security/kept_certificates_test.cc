#include "common/security/kept_certificates.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/files/files.h"
#include "common/security/certificate_authority.h"
#include "tests/catch.h"
#include "tests/log_capture.h"
#include "tests/temp_folder.h"

namespace leeway::kept_certificates {
namespace {

// A role's folder, whose certificates are renewed by others.
struct Role {
  Role() { CHECK(WriteCredentials(folder.path(), authority.own().certificate, first).ok()); }
  std::string operator/(const char* name) const { return folder.path() + "/" + name; }
  CertificatePaths paths() const {
    return {
        .ca = *this / kCaFile, .certificate = *this / kCertificateFile, .key = *this / kKeyFile};
  }
  CertificateAndKey Issue(uint32_t days = 10) const {
    return authority.Issue({.role = v1::ROLE_SERVER, .days = days}).value();
  }
  // Writes as cp, scp and a shell's > do: the file is emptied first, and keeps its inode.
  void Overwrite(const char* name, const std::string& text) const {
    std::ofstream(*this / name, std::ios::trunc) << text;
  }

  TempFolder folder;
  CertificateAuthority authority = CertificateAuthority::Make(10).value();
  CertificateAndKey first = Issue();
};

std::string Identity(const CertificateAndKey& pair) {
  return absl::StrCat(pair.certificate, "\n", pair.key);
}

std::string Content(const std::string& file) { return ReadFile(file, 1 << 20).value(); }

using Damages = std::map<std::string, std::function<void(const Role&)>>;
const Damages& AllDamages() {
  static const Damages damages = {
      {"half a certificate",
       [](const Role& role) {
         const std::string text = role.first.certificate;
         role.Overwrite(kCertificateFile, text.substr(0, text.size() / 2));
       }},
      {"one certificate and a half",
       [](const Role& role) {
         const std::string text = role.first.certificate;
         role.Overwrite(kCertificateFile, text + text.substr(0, text.size() / 2));
       }},
      {"half a key",
       [](const Role& role) {
         role.Overwrite(kKeyFile, role.first.key.substr(0, role.first.key.size() / 2));
       }},
      {"another key", [](const Role& role) { role.Overwrite(kKeyFile, role.Issue().key); }},
      {"another certificate",
       [](const Role& role) { role.Overwrite(kCertificateFile, role.Issue().certificate); }},
      {"swapped files",
       [](const Role& role) {
         role.Overwrite(kCertificateFile, role.first.key);
         role.Overwrite(kKeyFile, role.first.certificate);
       }},
      {"another authority",
       [](const Role& role) {
         role.Overwrite(kCaFile, CertificateAuthority::Make(10)->own().certificate);
       }},
      {"a pair of yesterday",
       [](const Role& role) {
         const CertificateAndKey old = role.Issue(0);
         role.Overwrite(kCertificateFile, old.certificate);
         role.Overwrite(kKeyFile, old.key);
       }},
      {"a pair of another authority",
       [](const Role& role) {
         const Role other;
         role.Overwrite(kCertificateFile, other.first.certificate);
         role.Overwrite(kKeyFile, other.first.key);
       }},
      {"noise", [](const Role& role) { role.Overwrite(kCertificateFile, std::string(9000, 'x')); }},
  };
  return damages;
}

// The last good set is kept, and the next good one is taken.
void CheckKept(const std::function<void(const Role&)>& damage) {
  const Role role;
  const auto kept = KeptCertificates::Start(role.paths(), std::chrono::hours(1)).value();
  damage(role);
  kept->Look();
  CHECK(Content(kept->identity_file()) == Identity(role.first));
  CHECK(Content(kept->ca_file()) == role.authority.own().certificate);
  const CertificateAndKey next = role.Issue();
  REQUIRE(WriteCredentials(role.folder.path(), role.authority.own().certificate, next).ok());
  kept->Look();
  CHECK(Content(kept->identity_file()) == Identity(next));
}

TEST_CASE("certificates: whatever becomes of the files, who reads them finds the last good set") {
  for (const auto& [what, damage] : AllDamages()) {
    INFO(what);
    CheckKept(damage);
  }
  for (const char* file : {kCaFile, kCertificateFile, kKeyFile}) {
    INFO(file);
    CheckKept([&](const Role& role) { std::filesystem::remove(role / file); });
    CheckKept([&](const Role& role) { role.Overwrite(file, ""); });
  }
}

size_t Times(const std::string& text, const std::string& word) {
  return std::vector<std::string>(absl::StrSplit(text, word)).size() - 1;
}

TEST_CASE("certificates: a file that stays bad is told once, one that is being written is not") {
  const Role role;
  const auto kept = KeptCertificates::Start(role.paths(), std::chrono::hours(1)).value();
  const testing::LogCapture log;
  const CertificateAndKey next = role.Issue();
  role.Overwrite(kKeyFile, next.key);
  kept->Look();
  CHECK(log.text().empty());
  for (int look = 0; look < 3; ++look) kept->Look();
  CHECK(Times(log.text(), "is not the key of") == 1);
  role.Overwrite(kCertificateFile, next.certificate);
  kept->Look();
  CHECK(Times(log.text(), "in use from now on") == 1);
}

TEST_CASE("certificates: those of another holder are not taken while the process lives") {
  const Role role;
  const auto kept = KeptCertificates::Start(role.paths(), std::chrono::hours(1)).value();
  CHECK(kept->holder().trust_domain == "leeway");
  for (const auto& [other, described] :
       {std::pair(CertificateRequest{.role = v1::ROLE_SERVER, .trust_domain = "speech"},
                  "is a server's certificate for the trust domain 'speech'"),
        std::pair(CertificateRequest{.role = v1::ROLE_WORKER},
                  "is a worker's certificate for the trust domain 'leeway'")}) {
    const testing::LogCapture log;
    const auto issued = role.authority.Issue(other);
    REQUIRE(WriteCredentials(role.folder.path(), role.authority.own().certificate, *issued).ok());
    for (int look = 0; look < 2; ++look) kept->Look();
    CHECK(Content(kept->identity_file()) == Identity(role.first));
    CHECK_THAT(log.text(),
               Catch::Contains(described) &&
                   Catch::Contains(", but this process has a server's certificate for the trust "
                                   "domain 'leeway'; restart the process to change it"));
  }
}

TEST_CASE("certificates: a reader sees that the content changed, by its time") {
  const Role role;
  const auto kept = KeptCertificates::Start(role.paths(), std::chrono::hours(1)).value();
  const auto before = std::filesystem::last_write_time(kept->identity_file());
  CHECK(WriteCredentials(role.folder.path(), role.authority.own().certificate, role.Issue()).ok());
  kept->Look();
  CHECK(std::filesystem::last_write_time(kept->identity_file()) != before);
}

TEST_CASE("certificates: who calls only needs an authority") {
  const Role role;
  const auto kept = KeptCertificates::Start({.ca = role / kCaFile}).value();
  CHECK(kept->identity_file().empty());
  CHECK(Content(kept->ca_file()) == role.authority.own().certificate);
}

}  // namespace
}  // namespace leeway::kept_certificates
