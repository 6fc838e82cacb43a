// One of the many workers in a process (light_workers.h).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <grpcpp/completion_queue.h>

#include "common/blocks.h"
#include "common/clock.h"
#include "common/rpc/queue_event.h"
#include "leeway/v1/coordinator.pb.h"
#include "leeway/v1/parameter_server.pb.h"
#include "tests/bench/growth/light_workers.h"

namespace leeway {

// Calls `what` on the queue's thread after `delay`.
void CallOn(grpc::CompletionQueue* queue, Duration delay, std::function<void()> what);

// Belongs to its queue's thread.
class LightWorker {
 public:
  LightWorker(LightWorkers* all, uint32_t number, grpc::CompletionQueue* queue);
  ~LightWorker();

  // Each ends with a call of LightWorkers::Done.
  void Register();
  void Connect();
  void Initialize();
  void Exchange();
  void Leave();
  void Beat();

  grpc::CompletionQueue* queue() const { return queue_; }

  // ---- between phases: results of the last Exchange
  void SetClocks(uint64_t clocks) { clocks_ = clocks; }
  uint64_t blocks() const { return layout_->blocks(); }
  uint64_t repeated() const { return repeated_; }
  // By clock: when its last frame was handed over, and when all its blocks had come.
  const std::vector<Time>& sent() const { return sent_; }
  const std::vector<Time>& received() const { return received_; }

 private:
  class Link;
  template <typename Reply>
  class Unary;

  void OnRegistered(const absl::Status& status, const v1::RegisterWorkerReply& reply);
  void SendAll();
  void OnReply(const v1::StreamReply& reply);
  v1::StreamRequest RequestFor(uint32_t block) const;

  LightWorkers* const all_;
  const uint32_t number_;
  grpc::CompletionQueue* const queue_;
  Duration backoff_ = std::chrono::milliseconds(20);

  uint64_t job_ = 0;
  uint32_t rank_ = 0;
  uint64_t incarnation_ = 0;
  std::vector<std::string> servers_;
  std::optional<BlockLayout> layout_;
  // By server: the link to it.
  std::vector<std::unique_ptr<Link>> links_;

  v1::ExchangeMethod method_ = v1::EXCHANGE_METHOD_PUSH_PULL;
  uint64_t clock_ = 0;
  uint64_t clocks_ = 0;
  // Links not yet connected, or blocks not yet answered.
  uint64_t missing_ = 0;
  uint64_t repeated_ = 0;
  std::vector<Time> sent_;
  std::vector<Time> received_;
};

}  // namespace leeway
