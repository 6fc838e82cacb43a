// Transport over gRPC, with several long-lived streams to each server. It uses TCP, or on one host
// unix sockets with the payloads in shared memory.
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

// There is one completion queue, and all callbacks run on one thread at a time (QueueDriver). One
// thread is enough, because it copies payloads much faster than the network brings them.
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
  // An operation on the queue that can be cancelled. It deletes itself when it is over.
  class Once;
  class AttachOnce;
  class TimerOnce;
  struct Server {
    // An error if the server cannot be reached in the way that the job requires.
    absl::Status status;
    bool local = false;
    std::shared_ptr<grpc::Channel> channel;
    std::vector<std::unique_ptr<StreamLane>> lanes;
  };

  std::shared_ptr<Server> MakeServer(const ServerEndpoint& endpoint,
                                     const TransportOptions& options, uint32_t index);
  std::shared_ptr<Server> At(uint32_t server) const;
  // Returns all servers, including the old endpoints of servers that have moved.
  std::vector<std::shared_ptr<Server>> All() const;
  StreamLane& LaneFor(Server& server, uint64_t bytes);
  void CallAttach(uint32_t server, const TransportRequest& request, Duration timeout,
                  std::shared_ptr<TransportCall> call);
  // Ends a call that cannot begin, with `status`. Like every call, the call ends on the queue's
  // thread, after this function has returned.
  void Refuse(const absl::Status& status, std::shared_ptr<TransportCall> call);
  void End(Once* once);
  // Runs every second. Ends calls that have waited too long, and forgets retired servers whose
  // streams have ended.
  void LookForLate();
  void ForgetRetired();
  bool Idle() const REQUIRES(mutex_);
  // Returns false if some operation is still in progress at the deadline.
  bool WaitForIdle(Time deadline);
  // Describes the operations in progress, for messages.
  std::string UnderWay();

  QueueDriver driver_;
  // Constant after construction.
  const TransportOptions options_;
  const std::string host_ = HostIdentity();
  std::shared_ptr<SharedArena> arena_;

  // The lanes have their own synchronisation. A thread that needs both mutexes takes mutex_ first.
  mutable Mutex servers_mutex_;
  std::vector<std::shared_ptr<Server>> servers_ GUARDED_BY(servers_mutex_);
  // The old endpoints of servers that have moved, until their streams have ended.
  std::vector<std::shared_ptr<Server>> retired_ GUARDED_BY(servers_mutex_);

  Mutex mutex_;
  CondVar idle_;
  std::set<Once*> active_ GUARDED_BY(mutex_);
  bool cancelled_ GUARDED_BY(mutex_) = false;
  bool closed_ GUARDED_BY(mutex_) = false;
};

std::unique_ptr<Transport> MakeStreamTransport(const TransportOptions& options);

}  // namespace leeway
