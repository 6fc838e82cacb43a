#include "common/command_line/security_flags.h"

#include <cstdlib>

namespace leeway {
namespace {

constexpr char kGroup[] = "Security";

std::string FromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

void DeclareSecurity(CLI::App& app, SecurityFlags& flags, EndOfCalls end) {
  flags.token = FromEnvironment("LEEWAY_TOKEN");
  const auto add = [&](const char* name, std::string& value, const char* help,
                       const char* variable) {
    app.add_option(name, value, help)->envname(variable)->group(kGroup);
  };
  add("--tls", flags.tls, "none, tls (servers have certificates) or mtls (everybody has)",
      "LEEWAY_TLS");
  add("--tls-dir", flags.tls_dir, "Folder with ca.crt, tls.crt and tls.key", "LEEWAY_TLS_DIR");
  add("--tls-ca", flags.ca, "Certificates that those of others must be signed by (PEM)",
      "LEEWAY_TLS_CA");
  add("--tls-certificate", flags.certificate, "This process's certificate (PEM)",
      "LEEWAY_TLS_CERTIFICATE");
  add("--tls-key", flags.key, "The certificate's private key (PEM)", "LEEWAY_TLS_KEY");
  add("--token-file", flags.token_file,
      "File with the job's token, which every call brings; or the token itself in LEEWAY_TOKEN",
      "LEEWAY_TOKEN_FILE");
  if (end == EndOfCalls::kCalls) return;
  flags.status_token = FromEnvironment("LEEWAY_STATUS_TOKEN");
  add("--status-token-file", flags.status_token_file,
      "File with a token that may read the job's status only; or LEEWAY_STATUS_TOKEN",
      "LEEWAY_STATUS_TOKEN_FILE");
}

}  // namespace leeway
