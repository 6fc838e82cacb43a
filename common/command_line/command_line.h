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

// Parses, with what the options' callbacks do. An option or argument with an empty value is a
// mistake, as of a script whose variable is not set: none means anything by it. Nothing if the
// program may go on; else its exit code, once help, version or the mistake is printed: "leeway:
// unknown option '--run-dri'; did you mean '--run-dir'?".
std::optional<int> ParseCommandLine(CLI::App& app, int argc, const char* const* argv);

}  // namespace leeway
