// The options by which a program proves who it is, each with its variable of the environment.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "common/environment.h"
#include "common/security/settings.h"

namespace leeway {

// --tls, --tls-dir and its parts, --token-file: LEEWAY_TLS, LEEWAY_TLS_DIR, ...; also takes
// LEEWAY_TOKEN. A program that answers calls has --status-token-file, too.
void DeclareSecurity(CLI::App& app, SecurityFlags& flags, EndOfCalls end);
// For who makes the keys of a run by itself: --tls and the token only.
void DeclareRunSecurity(CLI::App& app, SecurityFlags& flags);

// The same from the environment alone: for what has no command line of its own, and makes calls.
SecurityFlags SecurityFlagsFromEnvironment(const EnvironmentLookup& look_up = LookUpEnvironment);

// The variables by which a program that it is the environment of has `flags`, and no others: those
// without a value are there, and empty.
std::vector<std::pair<std::string, std::string>> SecurityEnvironment(const SecurityFlags& flags);

}  // namespace leeway
