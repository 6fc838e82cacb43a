// Keeps what the worker in this process publishes (Outbox), and answers the other workers' fetches
// of it (EXCHANGE_METHOD_FETCH). A fetch waits until its piece is published.
//
// Memory: the worker keeps the pieces of a few clocks (KeepFrom). In any case only the newest
// kClocksKept clocks are kept, so the values take at most 2 x kClocksKept models: one sum and one
// vector of weights a clock. Besides, readers may hold older values for as long as
// limits.unread_bytes allows them to (server/service/unread_answers.h). Buffers come from the
// server's shared memory while it has room, so a worker of the same host reads them in place.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/peers/outbox.h"
#include "common/shm/shared_memory.h"
#include "leeway/v1/parameter_server.pb.h"
#include "server/peers/registered.h"
#include "server/shard/block_reading.h"
#include "server/shard/shard.h"
#include "server/store/block_pools.h"

namespace leeway {

// Thread-safe. No lock is held while values are read or written.
class PieceStore final : public Outbox {
 public:
  using Done = Shard::Done;

  // The most clocks that are kept. In gossip a worker may be some clocks ahead of another one that
  // still fetches from it, by about as many as a value needs to reach all workers.
  static constexpr uint64_t kClocksKept = 16;

  // `rank` is the worker in this process. `memory` returns the memory that peers of this host map,
  // or null. It is called in Open.
  PieceStore(uint32_t rank, std::function<std::shared_ptr<SharedArena>()> memory)
      : rank_(rank), memory_(std::move(memory)) {}

  // Refuses the fetches that wait for an earlier registration.
  void Open(uint64_t job, uint64_t generation, const BlockLayout& layout) override;
  // Returns an empty span before the first Open, and for a block that the model does not have.
  std::span<float> Prepare(const PieceName& name) override;
  // Has no effect if the piece was not prepared, or is too old to be kept.
  void Publish(const PieceName& name, uint64_t examples, uint64_t rates) override;
  void KeepFrom(uint64_t clock) override;

  // Answers a fetch, as Shard::Read answers a pull: `done` is called once, on any thread. `now` is
  // when the fetch arrived. Errors:
  // - UNAVAILABLE: the piece is not there within Shard::kWaitAtMost (the text says what is
  //   missing), or the worker has not registered for this generation yet.
  // - OUT_OF_RANGE: the piece is not kept any more.
  // - FAILED_PRECONDITION: the fetch is for another job or an older generation.
  // - INVALID_ARGUMENT: the model has no such block, or there is no such kind of piece.
  void Fetch(const v1::ExchangeHeader& header, v1::Piece piece, Time now, Done done,
             Patience patience = {});
  // Handles the fetches that have waited since before `since`, as Shard::Tick does.
  void Tick(Time since);
  // Answers all fetches, now and later, with UNAVAILABLE.
  void Close();

  // The number of fetches that wait.
  uint64_t waiting() const;

 private:
  struct Piece {
    SharedFloats values;
    uint64_t examples = 0;
    uint64_t rates = 0;
  };
  struct Waiter {
    Done done;
    Patience patience;
    Time since;
  };
  // What is left to do without the lock.
  struct Leaving {
    Done done;
    absl::StatusOr<BlockReading> result;
  };

  // Returns the error for a fetch that can never be answered, or not by this registration.
  absl::Status Check(const v1::ExchangeHeader& header, const PieceName& name) const
      REQUIRES(mutex_);
  // Forgets what belongs to clocks below `clock`, and refuses the fetches of it.
  void Forget(uint64_t clock, std::vector<Leaving>& leaving) REQUIRES(mutex_);
  // Answers every waiting fetch with `status`.
  void RefuseAll(const absl::Status& status, std::vector<Leaving>& leaving) REQUIRES(mutex_);
  static BlockReading ReadingOf(const PieceName& name, const Piece& piece);
  absl::Status NotKept(const PieceName& name) const REQUIRES(mutex_);
  // Returns a text such as "worker 3 has not published its sum of block 7 at clock 12 yet".
  std::string Missing(const PieceName& name) const;
  static void Deliver(std::vector<Leaving> leaving);

  const uint32_t rank_;
  const std::function<std::shared_ptr<SharedArena>()> memory_;

  mutable Mutex mutex_;
  Registered registered_ GUARDED_BY(mutex_);
  // The number of blocks of the model, and memory for their values. Null before the first Open.
  uint32_t blocks_ GUARDED_BY(mutex_) = 0;
  std::shared_ptr<const BlockPools> pools_ GUARDED_BY(mutex_);
  // The lowest clock that is kept.
  uint64_t keep_from_ GUARDED_BY(mutex_) = 0;
  bool closed_ GUARDED_BY(mutex_) = false;
  // All three are in the order of the clocks (ByClock).
  struct ByClock {
    bool operator()(const PieceName& a, const PieceName& b) const;
  };
  std::map<PieceName, SharedFloats, ByClock> prepared_ GUARDED_BY(mutex_);
  std::map<PieceName, Piece, ByClock> published_ GUARDED_BY(mutex_);
  std::map<PieceName, std::vector<Waiter>, ByClock> waiting_ GUARDED_BY(mutex_);
};

}  // namespace leeway
