// A worker whose contributions can be told apart in the servers' weights (tests/chaos/ledger.h),
// over the client library that leeway-worker has. It tells what it is told, and checks what every
// answer says about everybody's contributions.
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
  // In place of PushPull: Push, what is told, and then Pull, at every clock that this divides. 0:
  // never.
  uint64_t push_every = 0;
  // Calls of their own in place of streams, as with stock gRPC stubs.
  bool unary = false;
  // Faults, by which the checkers are tried: at this clock nothing is sent, or the contribution of
  // the clock before once more.
  std::optional<uint64_t> forget_at;
  std::optional<uint64_t> repeat_at;
  // A step's own time, before its contribution.
  std::function<void(uint64_t clock)> compute;
  // The servers have said that they have the contribution; before anything else is done.
  std::function<absl::Status(const v1::RegisterWorkerReply& life, uint64_t clock)> tell;
};

// To the job's end, or the worker's. DATA_LOSS: what it has read cannot be; any other error: start
// it again.
absl::Status RunLedgerWorker(const LedgerWorker& worker);

}  // namespace leeway::testing
