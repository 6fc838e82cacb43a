// The common part of the command lines of leeway, leeway-server and leeway-worker: addresses are
// checked before anything begins, and all programs report mistakes in the same form.
#pragma once

#include <optional>

#include <CLI/CLI.hpp>

namespace leeway {

// Accepts an address to connect to, HOST:PORT.
CLI::Validator AddressToReach();
// Accepts an address to listen at or to announce. Port 0 means any free port when listening, and
// the bound port when announcing.
CLI::Validator AddressToBind();

// Parses the arguments and runs the options' callbacks. Returns nothing if the program may
// continue. Otherwise it prints help, version or the mistake, and returns the exit code: "leeway:
// unknown option '--run-dri'; did you mean '--run-dir'?".
std::optional<int> ParseCommandLine(CLI::App& app, int argc, const char* const* argv);

}  // namespace leeway
