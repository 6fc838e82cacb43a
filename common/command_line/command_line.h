// What the command lines of leeway, leeway-server and leeway-worker have in common: addresses are
// checked before anything begins, and a mistake is named in one way.
#pragma once

#include <optional>

#include <CLI/CLI.hpp>

namespace leeway {

// An address to connect to, HOST:PORT.
CLI::Validator AddressToReach();
// An address to listen at, or to be announced at; port 0 stands for any, or for the one bound.
CLI::Validator AddressToBind();

// Parses, with what the options' callbacks do. An option or argument with an empty value is a
// mistake, as of a script whose variable is not set: none means anything by it. Nothing if the
// program may go on; else its exit code, once help, version or the mistake is printed: "leeway:
// unknown option '--run-dri'; did you mean '--run-dir'?".
std::optional<int> ParseCommandLine(CLI::App& app, int argc, const char* const* argv);

}  // namespace leeway
