// Transport over gRPC: long-lived streams, several to a server, over TCP or, on one host, unix
// sockets with the payloads in shared memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <grpcpp/completion_queue.h>

#include "absl/status/status.h"
#include "common/host.h"
#include "common/mutex.h"
#include "common/queue_event.h"
#include "common/queue_poller.h"
#include "common/shared_memory.h"
#include "worker/client/stream_lane.h"
#include "worker/client/transport.h"

namespace leeway {

// One completion queue. One thread at a time takes from it and runs every callback: the thread that
// waits for an answer (Drive), else one of the transport's own. A worker's receiving side is a copy
// of each payload at memory speed, far above what the network brings.
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
  // Runs the next event; false: there was none by the deadline, or the queue is shut down.
  bool RunNext(Time deadline);
  // The transport's own thread.
  void Loop();
  bool TakeQueueInBackground();
  void GiveQueueBack();
  bool Idle() const REQUIRES(mutex_);

  // Has its own synchronisation.
  grpc::CompletionQueue queue_;
  // Of whoever takes from the queue.
  QueuePoller poller_{&queue_, true};
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

  // Who takes from the queue.
  Mutex driving_;
  CondVar queue_free_;
  bool driven_ GUARDED_BY(driving_) = false;
  uint32_t waiting_drivers_ GUARDED_BY(driving_) = 0;
  Time given_back_ GUARDED_BY(driving_){};
  // Whoever drove last had been away for a moment only.
  bool back_soon_ GUARDED_BY(driving_) = false;
  CondVar background_;
  bool over_ GUARDED_BY(driving_) = false;
  std::atomic<uint64_t> open_calls_{0};
  std::atomic<uint64_t> open_bytes_{0};

  std::thread thread_;
};

std::unique_ptr<Transport> MakeStreamTransport(const TransportOptions& options);

}  // namespace leeway
