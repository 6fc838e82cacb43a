// The limit for small exchanges: a bare unary gRPC call, 4 KiB there and 4 KiB back, as anybody
// would write it: generated stubs, the synchronous server, `bytes` in a message, one call after the
// other.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "bench/base/bench_process.h"

namespace leeway {

inline constexpr uint64_t kPingBytes = 4096;

// Listens on `address` ("127.0.0.1:0", "unix-abstract:NAME"); the hello is {"address": where}.
absl::StatusOr<BenchService> PingServer(const std::string& address);
// Answers {"round": seconds} with {"messages", "seconds", "latency"}, as the other clients do.
absl::StatusOr<BenchService> PingClient(const std::string& address);

}  // namespace leeway
