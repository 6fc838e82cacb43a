// Transport over gRPC: raw byte buffers through generic stubs.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <grpcpp/alarm.h>
#include <grpcpp/channel.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>

#include "common/mutex.h"
#include "worker/client/transport.h"

namespace leeway {

// One completion queue and one thread, which runs every callback: a worker's receiving side is a
// copy of each payload at memory speed, far above what the network brings.
class GrpcTransport : public Transport {
 public:
  explicit GrpcTransport(const std::vector<std::shared_ptr<grpc::Channel>>& channels);
  ~GrpcTransport() override;

  void CallUnary(uint32_t server, const std::string& method, const grpc::ByteBuffer& request,
                 Duration timeout, Done done) override;
  void CallAfter(Duration delay, std::function<void()> callback) override;
  void Cancel() override;
  void Close() override;

 private:
  // What the completion queue gives back; deleted after Run().
  struct Event;
  struct UnaryEvent;
  struct TimerEvent;

  void Loop();
  // The event was delivered: it can no longer be broken off.
  void Remove(Event* event);

  // Constant after construction.
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;
  // Has its own synchronisation.
  grpc::CompletionQueue queue_;

  Mutex mutex_;
  CondVar idle_;
  // Given to the queue, callback not yet returned.
  std::set<Event*> active_ GUARDED_BY(mutex_);
  bool cancelled_ GUARDED_BY(mutex_) = false;
  bool closed_ GUARDED_BY(mutex_) = false;

  std::thread thread_;
};

// A channel to each server (common/channel.h).
std::unique_ptr<Transport> MakeGrpcTransport(const std::vector<std::string>& servers);

}  // namespace leeway
