// The options by which a program proves its identity, each with its environment variable.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "common/environment.h"
#include "common/security/settings.h"

namespace leeway {

// Declares --tls, --tls-dir and the options for its files, and --token-file, with LEEWAY_TLS,
// LEEWAY_TLS_DIR and so on. Also reads LEEWAY_TOKEN. A program that answers calls gets
// --status-token-file, too.
void DeclareSecurity(CLI::App& app, SecurityFlags& flags, EndOfCalls end);
// For a program that makes the keys of a run itself: declares --tls and the token only.
void DeclareRunSecurity(CLI::App& app, SecurityFlags& flags);

// Reads the same settings from the environment alone, for programs without a command line of their
// own that only make calls.
SecurityFlags SecurityFlagsFromEnvironment(const EnvironmentLookup& look_up = LookUpEnvironment);

// Returns the environment variables that give a program exactly `flags`. A setting without a value
// has an empty variable.
std::vector<std::pair<std::string, std::string>> SecurityEnvironment(const SecurityFlags& flags);

}  // namespace leeway
