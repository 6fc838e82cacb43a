// The data plane's gRPC adaptor: decodes, asks the Shard, encodes. Payloads are never touched by
// protobuf (raw methods over grpc::ByteBuffer, common/wire/wire.h). The unary methods are served
// here, the stream by server/service/stream_session.h.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "common/clock.h"
#include "common/service/admitted_service.h"
#include "common/service/server_queue.h"
#include "leeway/v1/parameter_server.grpc.pb.h"
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
  // `boot_now`: what the lease is held by.
  explicit ParameterService(std::function<BootTime()> boot_now = BootClock::now)
      : AdmittedService("leeway.v1.ParameterServer"), table_(std::move(boot_now)) {}

  // Which shards are here, and who is let in to them.
  ShardTable& table() { return table_; }
  StreamList& streams() { return streams_; }

  // The job's bounds: limits.held_bytes, limits.unread_bytes, transport.channels. Before, there are
  // none.
  void SetLimits(const v1::TrainingJob& job);
  // Of received contributions, what may be held at once: the budget, and what comes in beyond it
  // (server/shard/admission.h), which with committed sets has no bound.
  uint64_t received_bytes_max() const { return received_bytes_max_; }

  // How many connections of the job's own there may be, if all shards come to be here.
  uint64_t connections_of_job() const { return connections_of_job_; }

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
  // What a shard has answered, as it leaves: UNAVAILABLE where the lease has ended since.
  Shard::Done WhileLeased(Shard::Done done) const;

  ShardTable table_;
  StreamList streams_;
  uint64_t received_bytes_max_ = ByteBudget::kUnlimited;
  uint64_t connections_of_job_ = 0;
};

}  // namespace leeway
