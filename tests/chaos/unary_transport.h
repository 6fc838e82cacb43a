// The transport of a ParameterClient as a worker of stock gRPC stubs would have it: each request is
// a unary call, and each payload is a message's field. Raw payloads only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include <grpcpp/channel.h>
#include <grpcpp/completion_queue.h>

#include "client/transport/stream_transport.h"
#include "client/transport/transport.h"
#include "common/mutex.h"

namespace leeway::testing {

// Attachments and timers use a StreamTransport, whose thread runs every callback.
class UnaryTransport : public Transport {
 public:
  explicit UnaryTransport(const TransportOptions& options);
  ~UnaryTransport() override { Close(); }

  void Call(uint32_t server, const TransportRequest& request, Duration timeout,
            std::shared_ptr<TransportCall> call) override;
  void CallAfter(Duration delay, std::function<void()> callback) override {
    inner_.CallAfter(delay, std::move(callback));
  }
  void Drive(const std::function<bool()>& done, Time deadline) override {
    inner_.Drive(done, deadline);
  }
  void Cancel() override;
  void Close() override;
  void MoveServer(uint32_t server, const ServerEndpoint& endpoint) override;

 private:
  struct Once;

  // Passes answers on.
  void Loop();

  StreamTransport inner_;
  grpc::CompletionQueue queue_;
  Mutex mutex_;
  CondVar idle_;
  std::vector<std::shared_ptr<grpc::Channel>> channels_ GUARDED_BY(mutex_);
  std::set<Once*> active_ GUARDED_BY(mutex_);
  bool cancelled_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace leeway::testing
