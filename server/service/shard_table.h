// Which shards this server holds, and which requests they admit. Every request of the data plane
// asks here once, whether it is a unary call or comes on a stream.
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
  // What this server serves. By shard number; null where another server owns the shard.
  struct Holdings {
    uint64_t job = 0;
    uint64_t generation = 0;
    std::vector<std::shared_ptr<Shard>> shards;
    // The replicas of other servers' shards, by shard number.
    std::vector<std::shared_ptr<ReplicaStore>> replicas;
    // The memory of the versions, which workers on this host may map. Null: it is not shared.
    std::shared_ptr<SharedArena> memory;
  };
  // What a request wants, as far as its admission depends on it.
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
  // How the last request of a stream was admitted. A similar next request needs no second check.
  // Used by one thread at a time.
  struct Admitted {
    // Weak: an idle stream must not keep the model of an older generation.
    std::weak_ptr<Shard> shard;
    uint64_t job = 0;
    uint64_t generation = 0;
    // A rank of the job, with an incarnation that the coordinator gave out.
    std::optional<Sender> sender;
  };

  // `boot_now` is the clock of the lease.
  explicit ShardTable(std::function<BootTime()> boot_now) : boot_now_(std::move(boot_now)) {}

  // Serves these shards from now on. Before the first call every request is UNAVAILABLE. A request
  // that waits at a shard which this server no longer serves is answered UNAVAILABLE.
  void Serve(Holdings holdings);
  // The same for a job of one shard.
  void Serve(uint64_t job, uint64_t generation, std::shared_ptr<Shard> shard);

  // No request is served from `until` on, because the coordinator may give the shards to other
  // servers then. At first the lease has no end.
  void SetLease(BootTime until) { lease_ = until.time_since_epoch().count(); }
  // This is correct even right after the host was suspended.
  bool leased() const {
    return boot_now_().time_since_epoch().count() < lease_.load(std::memory_order_relaxed);
  }
  // UNAVAILABLE: the answer to a request while leased() is false. It also replaces a shard's answer
  // that has not left by then, because a new owner of the blocks may have answered differently.
  static absl::Status LeaseIsOver();

  // The shard that serves the request. Errors:
  // - UNAVAILABLE: the shard is not here, or not of that generation yet, or the lease is over.
  // - FAILED_PRECONDITION: another job, or an older generation.
  // - The error of KnownLives::Check for the sender.
  // - RESOURCE_EXHAUSTED with a retry hint: the budget is used up, and the contribution is not one
  //   that is admitted in spite of that (server/shard/admission.h).
  // `last` belongs to the stream that brought the request; null for a unary call.
  absl::StatusOr<std::shared_ptr<Shard>> Admit(const v1::ExchangeHeader& header, Want want,
                                               Admitted* last = nullptr);
  // The same without checks of the sender and the budget.
  absl::StatusOr<std::shared_ptr<Shard>> Find(const v1::ExchangeHeader& header) const;
  // The replica to which a block from another server belongs.
  absl::StatusOr<std::shared_ptr<ReplicaStore>> FindReplica(const v1::ExchangeHeader& header) const;
  // Checks, as Find does, that this server holds that job and generation.
  absl::Status CheckHeld(uint64_t job, uint64_t generation) const;
  // As CheckHeld, and INVALID_ARGUMENT for a shard that the job does not have.
  absl::Status CheckShardNumber(const v1::AttachRequest& request) const;

  std::vector<std::shared_ptr<Shard>> shards() const;
  std::shared_ptr<SharedArena> memory() const;
  // The senders that are believed; at first all of them.
  KnownLives& lives() { return lives_; }
  // Received messages count here (limits.held_bytes).
  ByteBudget& budget() { return budget_; }

 private:
  // Finds the shard and checks the sender; notes in `last` that it is believed.
  absl::StatusOr<std::shared_ptr<Shard>> LookUp(const v1::ExchangeHeader& header, Want want,
                                                Admitted* last);
  absl::Status AdmitOverBudget(Shard& shard, const v1::ExchangeHeader& header);
  absl::Status CheckHeldLocked(uint64_t job, uint64_t generation) const REQUIRES(mutex_);

  const std::function<BootTime()> boot_now_;
  ByteBudget budget_;
  KnownLives lives_;
  std::atomic<BootClock::rep> lease_{BootTime::max().time_since_epoch().count()};

  mutable Mutex mutex_;
  Holdings holdings_ GUARDED_BY(mutex_);
};

}  // namespace leeway
