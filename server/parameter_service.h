// The data plane's gRPC adaptor: decodes, asks the Shard, encodes. Payloads are never touched by
// protobuf (raw methods over grpc::ByteBuffer, common/wire.h). The unary methods are served here,
// the stream by server/stream_session.h.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "common/clock.h"
#include "common/mutex.h"
#include "common/shared_memory.h"
#include "leeway/v1/parameter_server.grpc.pb.h"
#include "server/byte_budget.h"
#include "server/replica/replica_store.h"
#include "server/rpc/server_queue.h"
#include "server/shard.h"
#include "server/stream_list.h"

namespace leeway {

// Thread-safe.
class ParameterService final
    : public v1::ParameterServer::WithAsyncMethod_Attach<
          v1::ParameterServer::WithRawMethod_Initialize<v1::ParameterServer::WithRawMethod_Push<
              v1::ParameterServer::WithRawMethod_Pull<v1::ParameterServer::WithRawMethod_PushPull<
                  v1::ParameterServer::WithRawMethod_Exchange<v1::ParameterServer::Service>>>>>> {
 public:
  ParameterService() = default;

  // What is here to be served; by shard number, null where another server owns the shard.
  struct Holdings {
    uint64_t job = 0;
    uint64_t generation = 0;
    std::vector<std::shared_ptr<Shard>> shards;
    // Of other servers' shards, by shard number.
    std::vector<std::shared_ptr<ReplicaStore>> replicas;
    // What versions lie in, to be shared with workers on this host; null: nothing.
    std::shared_ptr<SharedArena> memory;
  };
  // From now on; before it requests are UNAVAILABLE. Who waits at a shard that is not served any
  // more is answered UNAVAILABLE.
  void Serve(Holdings holdings);
  // One shard, which is all of the job's.
  void Serve(uint64_t job, uint64_t generation, std::shared_ptr<Shard> shard);

  // No request is served from `until` on: by then the coordinator may have given the shards to
  // others. At first there is no such moment.
  void SetLease(Time until) { lease_ = until.time_since_epoch().count(); }
  // UNAVAILABLE once the lease is over.
  absl::Status CheckLease(Time now) const;

  // The shard for a request about a block: UNAVAILABLE while it is not here, or not of that
  // generation yet, FAILED_PRECONDITION for another job's or an older generation's.
  absl::StatusOr<std::shared_ptr<Shard>> Find(const v1::ExchangeHeader& header);
  std::shared_ptr<SharedArena> memory();

  // The job's bounds: limits.held_bytes, limits.unread_bytes, transport.channels. Before, there are
  // none.
  void SetLimits(const v1::TrainingJob& job);
  // Of received contributions, what may be held at once: the budget, and what comes in beyond it
  // (server/admission.h), which with committed sets has no bound.
  uint64_t received_bytes_max() const { return received_bytes_max_; }
  uint64_t unread_bytes_max() const { return unread_bytes_max_.load(std::memory_order_relaxed); }
  StreamList& streams() { return streams_; }
  // Received messages count here (limits.held_bytes).
  ByteBudget& budget() { return budget_; }
  // RESOURCE_EXHAUSTED with a retry hint: the budget is used up, and the contribution is not among
  // those that come in all the same (server/admission.h).
  absl::Status Admit(Shard& shard, const v1::ExchangeHeader& header) {
    return budget_.over() ? AdmitOver(shard, header) : absl::OkStatus();
  }
  // Takes a block for the replica that is here, as ReplicaStore::Take.
  absl::Status Replicate(const v1::ExchangeHeader& header, const v1::ReplicatedBlock& replicated,
                         const FloatPayload& payload, const std::function<bool()>& stands);

  void SetLive(uint32_t rank, bool live);
  // Shard::CommitSet of every shard here; FAILED_PRECONDITION for another job or generation.
  // `queue`, if any: its threads share the work.
  absl::Status CommitSet(const v1::CommitSetRequest& request, ServerQueue* queue = nullptr);
  // Gives up waits that are over; to be called a few times a second.
  void Tick();
  // Answers everybody who waits: gRPC's server does not end before its calls have.
  void Close();

  // Awaits calls on `queue`, which outlives the service, from now on: once the gRPC server runs.
  void Await(ServerQueue* queue);

 private:
  absl::StatusOr<v1::AttachReply> Attach(const v1::AttachRequest& request);
  void Initialize(const grpc::ByteBuffer& request, const Shard::Done& done);
  void Contribute(const grpc::ByteBuffer& request, bool wants_reply, const Shard::Done& done);
  void Pull(const grpc::ByteBuffer& request, const Shard::Done& done);
  absl::Status CheckHeld(uint64_t job, uint64_t generation) const REQUIRES(mutex_);
  absl::Status AdmitOver(Shard& shard, const v1::ExchangeHeader& header);
  std::vector<std::shared_ptr<Shard>> shards() EXCLUDES(mutex_);

  ByteBudget budget_;
  uint64_t received_bytes_max_ = ByteBudget::kUnlimited;
  StreamList streams_;
  std::atomic<uint64_t> unread_bytes_max_{ByteBudget::kUnlimited};

  Mutex mutex_;
  Holdings holdings_ GUARDED_BY(mutex_);
  std::atomic<Time::rep> lease_{Time::max().time_since_epoch().count()};
};

}  // namespace leeway
