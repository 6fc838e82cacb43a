// The gRPC adaptor of the data plane. It decodes requests, asks the Shard, and encodes answers.
// Protobuf never touches payloads (raw methods over grpc::ByteBuffer, common/wire/wire.h). This
// class serves the unary methods; server/service/stream_session.h serves streams.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include "common/clock.h"
#include "common/service/admitted_service.h"
#include "common/service/server_queue.h"
#include "leeway/v1/parameter_server.grpc.pb.h"
#include "server/peers/peer_stores.h"
#include "server/service/byte_budget.h"
#include "server/service/shard_table.h"
#include "server/service/stream_list.h"
#include "server/shard/shard.h"

namespace leeway {

// Thread-safe.
class ParameterService final
    : public AdmittedService<
          v1::ParameterServer::WithRawMethod_Exchange<v1::ParameterServer::Service>> {
 public:
  // `boot_now` is the clock that measures the lease.
  explicit ParameterService(std::function<BootTime()> boot_now = BootClock::now)
      : AdmittedService("leeway.v1.ParameterServer"), table_(std::move(boot_now)) {}

  // The shards of this server, and the rules by which they admit requests.
  ShardTable& table() { return table_; }
  StreamList& streams() { return streams_; }

  // Answers other workers for worker `rank`, which is in this process. Call this before Await.
  void ServePeers(uint32_t rank) {
    peers_ = std::make_unique<PeerStores>(rank, [this] { return table_.memory(); });
  }
  // Null without ServePeers.
  PeerStores* peers() { return peers_.get(); }
  // Checks the sender of a request to the worker in this process: that the process has a worker
  // (UNIMPLEMENTED otherwise), that the job has the rank, and that the life is the newest one.
  absl::Status AdmitPeer(const v1::ExchangeHeader& header) const;

  // Sets the job's bounds: limits.held_bytes, limits.unread_bytes, transport.channels,
  // workers.count. Until this call there are no bounds.
  void SetLimits(const v1::TrainingJob& job);
  // The most bytes of received contributions that the server can hold at one time: the budget, and
  // what it admits beyond the budget (server/shard/admission.h). Unlimited with committed sets.
  uint64_t received_bytes_max() const { return received_bytes_max_; }

  // The number of connections that the job itself needs at most. It needs them if this server comes
  // to hold all shards.
  uint64_t connections_of_job() const { return connections_of_job_; }

  void SetLive(uint32_t rank, bool live);
  // Calls Shard::CommitSet for every shard here. Returns FAILED_PRECONDITION for another job or
  // generation. If `queue` is not null, its threads share the work.
  absl::Status CommitSet(const v1::CommitSetRequest& request, ServerQueue* queue = nullptr);
  // Refuses requests that have waited for too long. Call this a few times a second.
  void Tick();
  // Answers all waiting requests. This is necessary because gRPC's server does not end before its
  // calls have ended.
  void Close();

  // Accepts calls on `queue` from now on. Call this once the gRPC server runs. The queue outlives
  // the service.
  void Await(ServerQueue* queue);

 private:
  absl::StatusOr<v1::AttachReply> Attach(const v1::AttachRequest& request);
  void Initialize(const grpc::ByteBuffer& request, const Shard::Done& done);
  void Contribute(const grpc::ByteBuffer& request, bool wants_reply, const Shard::Done& done);
  void Pull(const grpc::ByteBuffer& request, const Shard::Done& done);
  // Returns a callback that passes a shard's answer to `done`, or UNAVAILABLE if the lease has
  // ended meanwhile.
  Shard::Done WhileLeased(Shard::Done done) const;

  ShardTable table_;
  StreamList streams_;
  std::unique_ptr<PeerStores> peers_;
  std::atomic<uint32_t> ranks_ = std::numeric_limits<uint32_t>::max();
  uint64_t received_bytes_max_ = ByteBudget::kUnlimited;
  uint64_t connections_of_job_ = 0;
};

}  // namespace leeway
