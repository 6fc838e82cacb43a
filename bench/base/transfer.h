// What a transport benchmark moves, and what one of its rounds has measured. Leeway's own path and
// the raw limits share this.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "bench/base/statistics.h"

namespace leeway {

enum class TransferMethod { kPush, kPull, kPushPull };
enum class Wire { kAuto, kTcp, kUnix, kShm };

// Names as in --method and in the job's transport.type: "push_pull", "tcp". INVALID_ARGUMENT names
// the choices.
const char* NameOf(TransferMethod method);
const char* NameOf(Wire wire);
absl::StatusOr<TransferMethod> ParseMethod(const std::string& name);
absl::StatusOr<Wire> ParseWire(const std::string& name);

// A flat vector of `blocks` messages that is moved again and again. Every path has the same memory
// on both sides: the worker has a contribution vector and a weight vector, and the server has the
// parameters, all of this size.
struct TransferPlan {
  TransferMethod method = TransferMethod::kPush;
  // The size as float32, even if a codec sends fewer bytes. A multiple of 64.
  uint64_t message_bytes = 0;
  uint32_t blocks = 0;
  // The largest number of messages in flight at once.
  uint32_t window = 0;
  // How Leeway's client asks: the blocks in each call, and the calls that are open at once.
  uint32_t call_blocks = 1;
  uint32_t open_calls = 1;

  uint64_t message_floats() const { return message_bytes / sizeof(float); }
  uint64_t total_floats() const { return message_floats() * blocks; }
  uint64_t total_bytes() const { return message_bytes * blocks; }
  // Bytes of one message. Both directions count.
  uint64_t bytes_moved() const {
    return method == TransferMethod::kPushPull ? 2 * message_bytes : message_bytes;
  }
};

struct TransferRound {
  uint64_t messages = 0;
  double seconds = 0;
  // The sum of both processes.
  double cpu_seconds = 0;
  // Bytes of payloads and their headers, in both directions. 0 if they were not counted.
  uint64_t travelled_bytes = 0;
  // Seconds of a call, if the client can tell.
  std::optional<Percentiles> latency;
};

}  // namespace leeway
