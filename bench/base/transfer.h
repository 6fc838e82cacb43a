// What a transport benchmark moves, and what a round of it has measured: common to Leeway's own
// path and to the raw limits beside it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "bench/base/statistics.h"

namespace leeway {

enum class TransferMethod { kPush, kPull, kPushPull };
enum class Wire { kAuto, kTcp, kUnix, kShm };

// As in --method and in the job's transport.type: "push_pull", "tcp". INVALID_ARGUMENT names the
// choices.
const char* NameOf(TransferMethod method);
const char* NameOf(Wire wire);
absl::StatusOr<TransferMethod> ParseMethod(const std::string& name);
absl::StatusOr<Wire> ParseWire(const std::string& name);

// A flat vector of `blocks` messages, moved again and again. On both sides of every path: the
// worker has a contribution vector and a weight vector, the server the parameters, all of this
// size.
struct TransferPlan {
  TransferMethod method = TransferMethod::kPush;
  // Floats as bytes, also where a codec makes fewer of them: a multiple of 64.
  uint64_t message_bytes = 0;
  uint32_t blocks = 0;
  // Messages on their way at once, at most.
  uint32_t window = 0;
  // How Leeway's client asks: calls of so many blocks, so many of them open at once.
  uint32_t call_blocks = 1;
  uint32_t open_calls = 1;

  uint64_t message_floats() const { return message_bytes / sizeof(float); }
  uint64_t total_floats() const { return message_floats() * blocks; }
  uint64_t total_bytes() const { return message_bytes * blocks; }
  // Of one message: both directions count.
  uint64_t bytes_moved() const {
    return method == TransferMethod::kPushPull ? 2 * message_bytes : message_bytes;
  }
};

struct TransferRound {
  uint64_t messages = 0;
  double seconds = 0;
  // Of both processes.
  double cpu_seconds = 0;
  // Of payloads and their headers, both directions added; 0 where it was not counted.
  uint64_t travelled_bytes = 0;
  // Seconds of a call, where the client can tell.
  std::optional<Percentiles> latency;
};

}  // namespace leeway
