// The limit with which small exchanges are compared: a bare unary gRPC call with 4 KiB in each
// direction. It uses gRPC in the usual way: generated stubs, the synchronous server, `bytes` in a
// message, one call after the other.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "bench/base/bench_process.h"

namespace leeway {

inline constexpr uint64_t kPingBytes = 4096;

// Makes a server that listens on `address` ("127.0.0.1:0", "unix-abstract:NAME"). Its hello is
// {"address": the actual address}.
absl::StatusOr<BenchService> PingServer(const std::string& address);
// Makes a client that answers {"round": seconds} with {"messages", "seconds", "latency"}, as the
// other clients do.
absl::StatusOr<BenchService> PingClient(const std::string& address);

}  // namespace leeway
