#include "common/command_line/security_flags.h"

namespace leeway {
namespace {

constexpr char kGroup[] = "Security";
constexpr char kToken[] = "LEEWAY_TOKEN";
constexpr char kStatusToken[] = "LEEWAY_STATUS_TOKEN";

struct Option {
  const char* name;
  const char* variable;
  std::string SecurityFlags::*value;
  const char* help;
};

constexpr Option kMode = {
    "--tls", "LEEWAY_TLS", &SecurityFlags::tls,
    "none, tls (servers have certificates) or mtls (all processes have certificates)"};
constexpr Option kTokenFile = {
    "--token-file", "LEEWAY_TOKEN_FILE", &SecurityFlags::token_file,
    "File with the job's token, which each call carries. The file is read again when it changes. "
    "LEEWAY_TOKEN can contain the token itself instead"};
constexpr Option kStatusTokenFile = {
    "--status-token-file", "LEEWAY_STATUS_TOKEN_FILE", &SecurityFlags::status_token_file,
    "File with a token that only allows reading the job's status; or LEEWAY_STATUS_TOKEN"};
constexpr Option kFiles[] = {
    {"--tls-dir", "LEEWAY_TLS_DIR", &SecurityFlags::tls_dir,
     "Folder with ca.crt, tls.crt and tls.key"},
    {"--tls-ca", "LEEWAY_TLS_CA", &SecurityFlags::ca,
     "Authorities that must have signed the certificates of other processes (PEM)"},
    {"--tls-certificate", "LEEWAY_TLS_CERTIFICATE", &SecurityFlags::certificate,
     "This process's certificate (PEM)"},
    {"--tls-key", "LEEWAY_TLS_KEY", &SecurityFlags::key, "The certificate's private key (PEM)"},
    {"--trust-domain", "LEEWAY_TRUST_DOMAIN", &SecurityFlags::trust_domain,
     "Trust domain of accepted certificates (default: that of this process's certificate)"}};

void Add(CLI::App& app, SecurityFlags& flags, const Option& option) {
  app.add_option(option.name, flags.*option.value, option.help)
      ->envname(option.variable)
      ->group(kGroup);
}

}  // namespace

void DeclareRunSecurity(CLI::App& app, SecurityFlags& flags) {
  flags.token = LookUpEnvironment(kToken).value_or("");
  Add(app, flags, kMode);
  Add(app, flags, kTokenFile);
}

void DeclareSecurity(CLI::App& app, SecurityFlags& flags, EndOfCalls end) {
  DeclareRunSecurity(app, flags);
  for (const Option& option : kFiles) Add(app, flags, option);
  if (end == EndOfCalls::kCalls) return;
  flags.status_token = LookUpEnvironment(kStatusToken).value_or("");
  Add(app, flags, kStatusTokenFile);
}

SecurityFlags SecurityFlagsFromEnvironment(const EnvironmentLookup& look_up) {
  SecurityFlags flags;
  flags.token = look_up(kToken).value_or("");
  const auto take = [&](const Option& option) {
    flags.*option.value = look_up(option.variable).value_or("");
  };
  take(kMode);
  take(kTokenFile);
  for (const Option& option : kFiles) take(option);
  return flags;
}

std::vector<std::pair<std::string, std::string>> SecurityEnvironment(const SecurityFlags& flags) {
  std::vector<std::pair<std::string, std::string>> variables = {
      {kToken, flags.token},
      {kMode.variable, flags.*kMode.value},
      {kTokenFile.variable, flags.*kTokenFile.value}};
  for (const Option& option : kFiles) {
    variables.emplace_back(option.variable, flags.*option.value);
  }
  return variables;
}

}  // namespace leeway
