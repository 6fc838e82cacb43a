// The table of the shards on this server. It finds the shard for each request of the data plane and
// decides whether the request is admitted, for unary calls and for streams.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/shm/shared_memory.h"
#include "leeway/v1/parameter_server.pb.h"
#include "server/replica/replica_store.h"
#include "server/service/byte_budget.h"
#include "server/service/known_lives.h"
#include "server/shard/shard.h"

namespace leeway {

// Thread-safe.
class ShardTable {
 public:
  // The shards and replicas of this server. Entries are null for shards that another server owns.
  struct Holdings {
    uint64_t job = 0;
    uint64_t generation = 0;
    std::vector<std::shared_ptr<Shard>> shards;
    // The replicas of other servers' shards, by shard number.
    std::vector<std::shared_ptr<ReplicaStore>> replicas;
    // The memory of the versions, which workers on this host may map. Null if the memory is not
    // shared.
    std::shared_ptr<SharedArena> memory;
  };
  // The kinds of requests that are admitted by different rules.
  enum class Want {
    // To read the current version. Every sender may do this.
    kLatest,
    // Anything else that costs no memory here.
    kAnswer,
    // To hand in a contribution that stays in this server's memory until its update.
    kHold,
  };
  struct Sender {
    uint32_t rank = 0;
    uint64_t incarnation = 0;
    bool operator==(const Sender&) const = default;
  };
  // The result of admitting the last request of a stream. If the next request is similar, it needs
  // no second check. Used by one thread at a time.
  struct Admitted {
    // Weak: an idle stream must not keep the model of an older generation.
    std::weak_ptr<Shard> shard;
    uint64_t job = 0;
    uint64_t generation = 0;
    // A rank of the job, with an incarnation that the coordinator gave out.
    std::optional<Sender> sender;
  };

  // `boot_now` is the clock that measures the lease.
  explicit ShardTable(std::function<BootTime()> boot_now) : boot_now_(std::move(boot_now)) {}

  // Serves these shards from now on. Before the first call every request gets UNAVAILABLE. A
  // request that waits at a shard which this server no longer serves gets UNAVAILABLE, too.
  void Serve(Holdings holdings);
  // Does the same for a job of one shard.
  void Serve(uint64_t job, uint64_t generation, std::shared_ptr<Shard> shard);

  // Sets the end of the lease. From `until` on no request is served, because the coordinator may
  // assign the shards to other servers. Before the first call the lease has no end.
  void SetLease(BootTime until) { lease_ = until.time_since_epoch().count(); }
  // Returns true if the lease has not ended. This is right even in the first moment after the host
  // was suspended.
  bool leased() const {
    return boot_now_().time_since_epoch().count() < lease_.load(std::memory_order_relaxed);
  }
  // Returns the error UNAVAILABLE with which requests are answered while leased() is false. If the
  // lease ends before a shard's answer has left, this error replaces the answer, because a new
  // owner of the blocks may have answered differently.
  static absl::Status LeaseIsOver();

  // Returns the shard that serves the request. Errors:
  // - UNAVAILABLE: the shard is not here, or this server is not at that generation yet, or the
  //   lease is over.
  // - FAILED_PRECONDITION: the request is for another job or an older generation.
  // - The error of KnownLives::Check for the sender.
  // - RESOURCE_EXHAUSTED with a retry hint: the budget is used up, and the contribution is not
  //   admitted beyond the budget (server/shard/admission.h). `last` belongs to the stream that
  //   brought the request; null for a unary call.
  absl::StatusOr<std::shared_ptr<Shard>> Admit(const v1::ExchangeHeader& header, Want want,
                                               Admitted* last = nullptr);
  // Does the same as Admit, without checks of the sender and the budget.
  absl::StatusOr<std::shared_ptr<Shard>> Find(const v1::ExchangeHeader& header) const;
  // Returns the replica to which a block from another server belongs.
  absl::StatusOr<std::shared_ptr<ReplicaStore>> FindReplica(const v1::ExchangeHeader& header) const;
  // Checks that this server has that job and generation. Returns the same errors as Find.
  absl::Status CheckHeld(uint64_t job, uint64_t generation) const;
  // Checks the same as CheckHeld. Also returns INVALID_ARGUMENT for a shard that the job does not
  // have.
  absl::Status CheckShardNumber(const v1::AttachRequest& request) const;

  // Sets whether peers may replicate blocks here. They may if workers hold the blocks.
  void LetPeersReplicate(bool let) { peers_replicate_.store(let, std::memory_order_relaxed); }
  bool peers_replicate() const { return peers_replicate_.load(std::memory_order_relaxed); }

  std::vector<std::shared_ptr<Shard>> shards() const;
  std::shared_ptr<SharedArena> memory() const;
  // The incarnations that are accepted. At first all incarnations are accepted.
  KnownLives& lives() { return lives_; }
  const KnownLives& lives() const { return lives_; }
  // Counts the memory of received messages (limits.held_bytes).
  ByteBudget& budget() { return budget_; }

 private:
  // Finds the shard and checks the sender. Records the result in `last`.
  absl::StatusOr<std::shared_ptr<Shard>> LookUp(const v1::ExchangeHeader& header, Want want,
                                                Admitted* last);
  absl::Status AdmitOverBudget(Shard& shard, const v1::ExchangeHeader& header);
  absl::Status CheckHeldLocked(uint64_t job, uint64_t generation) const REQUIRES(mutex_);

  const std::function<BootTime()> boot_now_;
  ByteBudget budget_;
  KnownLives lives_;
  std::atomic<bool> peers_replicate_ = false;
  std::atomic<BootClock::rep> lease_{BootTime::max().time_since_epoch().count()};

  mutable Mutex mutex_;
  Holdings holdings_ GUARDED_BY(mutex_);
};

}  // namespace leeway
