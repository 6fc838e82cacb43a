// Keeps the weights of the worker in this process, and lets other workers meet them
// (EXCHANGE_METHOD_MEET). Each version of a block is an immutable buffer, to which answers refer. A
// change writes another buffer, of a pool in the server's shared memory.
//
// The changes of one block take turns, in the order in which they come: the thread that finds no
// other one at work makes its own change, and those that come meanwhile. The lock that orders them
// is not held during arithmetic.
//
// The newest answer to each rank is kept until the rank says that it has it, because the rank may
// have to ask again. So at most one older version is kept for each rank and block. A rank that
// repeats a meeting gets the same answer, and the meeting does not count again
// (server/core/meeting_core.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "common/mutex.h"
#include "common/peers/meeting_place.h"
#include "common/shm/shared_memory.h"
#include "common/wire/payload.h"
#include "leeway/v1/parameter_server.pb.h"
#include "server/peers/met_weights.h"
#include "server/peers/registered.h"
#include "server/shard/shard.h"

namespace leeway {

// Thread-safe. No lock is held while values are read or written.
class MeetingStore final : public MeetingPlace {
 public:
  using Done = Shard::Done;

  // `rank` is the worker in this process. `memory` returns the memory that peers of this host map,
  // or null. It is called in Open.
  MeetingStore(uint32_t rank, std::function<std::shared_ptr<SharedArena>()> memory)
      : rank_(rank), memory_(std::move(memory)) {}

  void Open(uint64_t job, uint64_t generation, const BlockLayout& layout,
            std::span<const float> weights) override;
  // Has no effect before the first Open, or if the spans do not have the block's size.
  void Subtract(uint32_t block, std::span<const float> change, std::span<float> weights) override;
  void End() override;

  // Answers a meeting. `payload` has the sender's block. Without a payload and with 0 examples the
  // request says that the sender has the answer of header.clock, which is then dropped. `done` is
  // called once, on any thread, and must not call this object. Errors:
  // - INVALID_ARGUMENT: the block, the number of values or a value is impossible. Nothing changes.
  // - ABORTED: a newer life of the rank has met this block.
  // - FAILED_PRECONDITION: the meeting is older than the rank's newest one, or its answer was
  //   dropped; the request is for another job or an older generation; or the worker has not begun
  //   in this generation, or has ended its meetings. The sender then meets another worker.
  // - UNAVAILABLE: the worker's process ends.
  void Meet(const v1::ExchangeHeader& header, FloatPayload payload, Done done);
  // Answers all later meetings with UNAVAILABLE.
  void Close();

 private:
  // Returns the weights of the present registration, or null.
  std::shared_ptr<MetWeights> weights() const;
  // Returns the weights if the request is for the present registration.
  absl::StatusOr<std::shared_ptr<MetWeights>> WeightsFor(const v1::ExchangeHeader& header) const;

  const uint32_t rank_;
  const std::function<std::shared_ptr<SharedArena>()> memory_;

  mutable Mutex mutex_;
  Registered registered_ GUARDED_BY(mutex_);
  // Null before the first Open.
  std::shared_ptr<MetWeights> weights_ GUARDED_BY(mutex_);
  bool closed_ GUARDED_BY(mutex_) = false;
};

}  // namespace leeway
