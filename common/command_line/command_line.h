// The common part of the command lines of leeway, leeway-server and leeway-worker. Addresses are
// checked before a program does anything else, and all programs report mistakes in the same form.
#pragma once

#include <optional>

#include <CLI/CLI.hpp>

namespace leeway {

// Accepts an address to connect to, HOST:PORT.
CLI::Validator AddressToReach();
// Accepts an address to listen on or to announce. Port 0 means any free port in an address to
// listen on, and the port of the listener in an address to announce.
CLI::Validator AddressToBind();

// Parses the command line and runs the options' callbacks. Returns nothing if the program may go
// on. Otherwise prints the help, the version or the mistake, and returns the program's exit code. A
// mistake looks like this: "leeway: unknown option '--run-dri'; did you mean '--run-dir'?". An
// empty value is a mistake, because it usually comes from a script's unset variable.
std::optional<int> ParseCommandLine(CLI::App& app, int argc, const char* const* argv);

}  // namespace leeway
