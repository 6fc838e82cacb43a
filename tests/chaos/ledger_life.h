// A worker whose contributions can be told apart in the servers' weights (tests/chaos/ledger.h), on
// the client library that leeway-worker uses. It reports each acknowledgement, and checks what
// every answer says about the contributions of all ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway::testing {

struct LedgerWorker {
  std::string coordinator;
  uint32_t rank = 0;
  uint64_t nonce = 0;
  uint64_t blocks = 4;
  // Every clock that this divides uses Push, `tell`, and then Pull in place of PushPull. 0: no
  // clock does.
  uint64_t push_every = 0;
  // Uses unary calls in place of streams, as with stock gRPC stubs.
  bool unary = false;
  // Deliberate faults, which the checkers must find: at this clock nothing is sent, or the previous
  // clock's contribution is sent once more.
  std::optional<uint64_t> forget_at;
  std::optional<uint64_t> repeat_at;
  // Takes the time of a step, before its contribution.
  std::function<void(uint64_t clock)> compute;
  // Called as soon as the servers have said that they have the contribution, before anything else
  // is done.
  std::function<absl::Status(const v1::RegisterWorkerReply& life, uint64_t clock)> tell;
};

// Runs to the end of the job or of the worker. DATA_LOSS: the worker has read something impossible.
// After any other error it is to be started again.
absl::Status RunLedgerWorker(const LedgerWorker& worker);

}  // namespace leeway::testing
