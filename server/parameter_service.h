// The data plane's gRPC adaptor: decodes, asks the Shard, encodes. Payloads are never touched by
// protobuf (raw methods over grpc::ByteBuffer, common/wire.h). The unary methods are served here,
// the stream by server/stream_session.h.
#pragma once

#include <functional>
#include <memory>

#include "common/clock.h"
#include "common/mutex.h"
#include "common/shared_memory.h"
#include "leeway/v1/parameter_server.grpc.pb.h"
#include "server/rpc/server_queue.h"
#include "server/shard.h"

namespace leeway {

// Thread-safe.
class ParameterService final
    : public v1::ParameterServer::WithAsyncMethod_Attach<
          v1::ParameterServer::WithRawMethod_Initialize<v1::ParameterServer::WithRawMethod_Push<
              v1::ParameterServer::WithRawMethod_Pull<v1::ParameterServer::WithRawMethod_PushPull<
                  v1::ParameterServer::WithRawMethod_Exchange<v1::ParameterServer::Service>>>>>> {
 public:
  // A waiting request is answered UNAVAILABLE, naming who is missing, after this long; the worker
  // sends it again. So nobody waits in silence.
  static constexpr Duration kWaitAtMost = std::chrono::seconds(2);

  ParameterService() = default;

  // From now on requests of `job` in this generation are served; before it they are UNAVAILABLE.
  // Who waits at the shard before is answered UNAVAILABLE. Null: requests have to wait for the
  // next.
  void Serve(uint64_t job, uint64_t generation, std::shared_ptr<Shard> shard);
  // The shard for a request: UNAVAILABLE while there is none, or none of that generation yet,
  // FAILED_PRECONDITION for another job's or an older generation's.
  absl::StatusOr<std::shared_ptr<Shard>> Find(uint64_t job, uint64_t generation);
  // What the shard's versions lie in, to be shared with workers on this host; null: nothing.
  std::shared_ptr<SharedArena> memory();

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
  std::shared_ptr<Shard> shard() EXCLUDES(mutex_);

  Mutex mutex_;
  uint64_t job_ GUARDED_BY(mutex_) = 0;
  uint64_t generation_ GUARDED_BY(mutex_) = 0;
  std::shared_ptr<Shard> shard_ GUARDED_BY(mutex_);
};

}  // namespace leeway
