// Log lines of all processes, through spdlog:
//   2026-11-20T10:27:55.123Z INFO  worker 2: connected to 2 servers
// Log with spdlog::info and similar functions. This file only sets the format and the destination
// of the lines.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace leeway {

struct LogOptions {
  // The name of this process in each line: "server 0", "worker 2" or "launcher".
  std::string role;
  // The file to which lines are appended. If empty, they are written to stderr.
  std::string file;
  bool verbose = false;
};

// Call this function once, at the start of a program, before other threads log. Each line is
// flushed.
absl::Status SetUpLog(const LogOptions& options);

// Changes the role, once the process knows it. (A worker learns its rank from the coordinator.)
void SetLogRole(const std::string& role);

}  // namespace leeway
