// Transport over gRPC: long-lived streams, several to a server, over TCP or, on one host, unix
// sockets with the payloads in shared memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/transport/queue_driver.h"
#include "client/transport/stream_lane.h"
#include "client/transport/transport.h"
#include "common/mutex.h"
#include "common/rpc/host.h"
#include "common/shm/shared_memory.h"

namespace leeway {

// One completion queue, and one thread at a time that runs every callback (QueueDriver): a worker's
// receiving side is a copy of each payload at memory speed, far above what the network brings.
class StreamTransport : public Transport {
 public:
  explicit StreamTransport(const TransportOptions& options);
  ~StreamTransport() override;

  void Call(uint32_t server, const TransportRequest& request, Duration timeout,
            std::shared_ptr<TransportCall> call) override;
  void CallAfter(Duration delay, std::function<void()> callback) override;
  void Drive(const std::function<bool()>& done, Time deadline) override;
  void Cancel() override;
  void Close() override;
  FloatBuffer MakeVector(size_t floats) override { return MakeFloats(arena_.get(), floats); }
  bool HasLink(uint32_t server) const override;
  void MoveServer(uint32_t server, const ServerEndpoint& endpoint) override;

 private:
  // Something given to the queue that can be broken off; deletes itself when it is over.
  class Once;
  class AttachOnce;
  class TimerOnce;
  struct Server {
    // Not OK: it cannot be reached as the job asks.
    absl::Status status;
    bool local = false;
    std::shared_ptr<grpc::Channel> channel;
    std::vector<std::unique_ptr<StreamLane>> lanes;
  };

  std::shared_ptr<Server> MakeServer(const ServerEndpoint& endpoint,
                                     const TransportOptions& options, uint32_t index);
  std::shared_ptr<Server> At(uint32_t server) const;
  // Those that have moved away included.
  std::vector<std::shared_ptr<Server>> All() const;
  StreamLane& LaneFor(Server& server, uint64_t bytes);
  void CallAttach(uint32_t server, const TransportRequest& request, Duration timeout,
                  std::shared_ptr<TransportCall> call);
  // Ends a call that cannot begin, as everything ends: later, on the queue's thread.
  void Refuse(const absl::Status& status, std::shared_ptr<TransportCall> call);
  void End(Once* once);
  // Every second: calls without an answer, and servers of which nothing is left.
  void LookForLate();
  void ForgetRetired();
  bool Idle() const REQUIRES(mutex_);
  // False: at the deadline something was still under way.
  bool WaitForIdle(Time deadline);
  // For messages.
  std::string UnderWay();

  QueueDriver driver_;
  // Constant after construction.
  const TransportOptions options_;
  const std::string host_ = HostIdentity();
  std::shared_ptr<SharedArena> arena_;

  // The lanes have their own synchronisation. Taken after mutex_ where both are.
  mutable Mutex servers_mutex_;
  std::vector<std::shared_ptr<Server>> servers_ GUARDED_BY(servers_mutex_);
  // Have moved away; until their streams have ended.
  std::vector<std::shared_ptr<Server>> retired_ GUARDED_BY(servers_mutex_);

  Mutex mutex_;
  CondVar idle_;
  std::set<Once*> active_ GUARDED_BY(mutex_);
  bool cancelled_ GUARDED_BY(mutex_) = false;
  bool closed_ GUARDED_BY(mutex_) = false;
};

std::unique_ptr<Transport> MakeStreamTransport(const TransportOptions& options);

}  // namespace leeway
