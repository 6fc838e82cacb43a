// The options by which a program proves who it is, each with its variable of the environment.
#pragma once

#include <CLI/CLI.hpp>

#include "absl/status/status.h"
#include "common/security/settings.h"

namespace leeway {

// --tls, --tls-dir and its parts, --token-file: LEEWAY_TLS, LEEWAY_TLS_DIR, ...; also takes
// LEEWAY_TOKEN. A program that answers calls has --status-token-file, too.
void DeclareSecurity(CLI::App& app, SecurityFlags& flags, EndOfCalls end);

}  // namespace leeway
