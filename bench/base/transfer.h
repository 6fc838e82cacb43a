// Describes the data that a transport benchmark moves, and the measurements of one round. Leeway's
// own path and the raw limits share these structs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "bench/base/statistics.h"

namespace leeway {

enum class TransferMethod { kPush, kPull, kPushPull };
enum class Wire { kAuto, kTcp, kUnix, kShm };

// Names as in --method and in the job's transport.type: "push_pull", "tcp". The parsers return
// INVALID_ARGUMENT, with the possible names, for any other name.
const char* NameOf(TransferMethod method);
const char* NameOf(Wire wire);
absl::StatusOr<TransferMethod> ParseMethod(const std::string& name);
absl::StatusOr<Wire> ParseWire(const std::string& name);

// A flat vector of `blocks` messages that is moved again and again. Every path uses the same
// memory: the worker has a contribution and weights, and the server has the parameters. All three
// are vectors of this size.
struct TransferPlan {
  TransferMethod method = TransferMethod::kPush;
  // The size of a message as float32, a multiple of 64. A codec may send fewer bytes.
  uint64_t message_bytes = 0;
  uint32_t blocks = 0;
  // The largest number of messages in flight at once.
  uint32_t window = 0;
  // The number of blocks in each call of Leeway's client, and the number of calls that are open at
  // once.
  uint32_t call_blocks = 1;
  uint32_t open_calls = 1;

  uint64_t message_floats() const { return message_bytes / sizeof(float); }
  uint64_t total_floats() const { return message_floats() * blocks; }
  uint64_t total_bytes() const { return message_bytes * blocks; }
  // Returns the bytes that one message moves, in both directions together.
  uint64_t bytes_moved() const {
    return method == TransferMethod::kPushPull ? 2 * message_bytes : message_bytes;
  }
};

struct TransferRound {
  uint64_t messages = 0;
  double seconds = 0;
  // The processor time of both processes together.
  double cpu_seconds = 0;
  // The bytes of payloads and their headers, in both directions. 0 if nobody counted them.
  uint64_t travelled_bytes = 0;
  // The seconds that a call took, if the client has measured them.
  std::optional<Percentiles> latency;
};

}  // namespace leeway
