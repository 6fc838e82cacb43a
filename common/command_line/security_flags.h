// The command-line options for TLS and tokens, each with its environment variable.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "common/environment.h"
#include "common/security/settings.h"

namespace leeway {

// Declares --tls, --tls-dir, the options for the files of TLS, and --token-file, with the variables
// LEEWAY_TLS, LEEWAY_TLS_DIR and so on. Also reads LEEWAY_TOKEN. If the program answers calls,
// declares --status-token-file, too.
void DeclareSecurity(CLI::App& app, SecurityFlags& flags, EndOfCalls end);
// Declares only --tls and the options for the token, for a program that creates a run's keys
// itself.
void DeclareRunSecurity(CLI::App& app, SecurityFlags& flags);

// Reads the same settings from the environment only. For programs that make calls but do not parse
// a command line.
SecurityFlags SecurityFlagsFromEnvironment(const EnvironmentLookup& look_up = LookUpEnvironment);

// Returns the environment variables from which a program reads exactly `flags`. If a setting has no
// value, its variable is empty.
std::vector<std::pair<std::string, std::string>> SecurityEnvironment(const SecurityFlags& flags);

}  // namespace leeway
