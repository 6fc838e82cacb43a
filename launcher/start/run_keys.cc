#include "launcher/start/run_keys.h"

#include <filesystem>
#include <iostream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/command_line/security_flags.h"
#include "common/files/private_files.h"
#include "common/rpc/transport_security.h"
#include "common/status.h"

namespace leeway {
namespace {

std::string ModeName(v1::TlsMode mode) {
  const std::string name = v1::TlsMode_Name(mode);
  return absl::AsciiStrToLower(name.substr(name.rfind('_') + 1));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunKeys>> RunKeys::Make(const SecurityFlags& flags,
                                                       const v1::Security& job,
                                                       const std::string& folder) {
  std::unique_ptr<RunKeys> keys(new RunKeys(folder));
  // The settings are read without TLS, because the files for TLS are made below.
  SecurityFlags plain = flags;
  plain.tls = "none";
  ASSIGN_OR_RETURN(keys->own_, SettingsOf(plain, job, EndOfCalls::kCalls));
  // Take the token as a string now. The processes get it in their environment, where it cannot
  // change later.
  const std::string given = keys->own_.token.text();
  ASSIGN_OR_RETURN(const Token token, given.empty() ? Token::Draw() : Token::Parse(given, "token"));
  keys->own_.token = token;
  ASSIGN_OR_RETURN(keys->mode_, TlsModeOf(flags, job));
  if (keys->mode_ != v1::TLS_MODE_NONE) {
    ASSIGN_OR_RETURN(keys->folder_, KeyFolder::Make());
    const std::string warning = keys->folder_->Warning();
    if (!warning.empty()) std::cerr << "leeway: " << warning << std::endl;
    ASSIGN_OR_RETURN(keys->own_, keys->folder_->SettingsFor(v1::ROLE_LAUNCHER));
    keys->own_.token = token;
  }
  RETURN_IF_ERROR(keys->LeaveForCommands());
  return keys;
}

RunKeys::~RunKeys() {
  // Reset the settings, because their files are removed now.
  SetProcessSecurity({});
  std::error_code error;
  std::filesystem::remove(absl::StrCat(folder_here_, "/", kTokenFile), error);
  std::filesystem::remove(absl::StrCat(folder_here_, "/", kTlsLink), error);
}

absl::Status RunKeys::LeaveForCommands() const {
  RETURN_IF_ERROR(
      WritePrivateFile(absl::StrCat(folder_here_, "/", kTokenFile), own_.token.text() + "\n"));
  const std::string link = absl::StrCat(folder_here_, "/", kTlsLink);
  std::error_code error;
  std::filesystem::remove(link, error);
  if (folder_ == nullptr) return absl::OkStatus();
  std::filesystem::create_symlink(folder_->Of(v1::ROLE_LAUNCHER), link, error);
  return error ? absl::UnavailableError(absl::StrCat(link, ": ", error.message()))
               : absl::OkStatus();
}

Environment RunKeys::For(v1::Role role) const {
  return SecurityEnvironment({.tls = ModeName(mode_),
                              .tls_dir = folder_ == nullptr ? "" : folder_->Of(role),
                              .token = own_.token.text()});
}

}  // namespace leeway
