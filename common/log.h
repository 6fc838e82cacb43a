// Log lines of every process, through spdlog:
//   2026-11-20T10:27:55.123Z INFO  worker 2: connected to 2 servers
// Log with spdlog::info and its like; this only sets up the form and the place.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace leeway {

struct LogOptions {
  // "server 0", "worker 2", "launcher"; printed in each line.
  std::string role;
  // Appended to; empty: stderr.
  std::string file;
  bool verbose = false;
};

// Once, at the start of a program, before other threads log. Each line is flushed.
absl::Status SetUpLog(const LogOptions& options);

// Once the process knows who it is (a worker learns its rank from the coordinator).
void SetLogRole(const std::string& role);

}  // namespace leeway
