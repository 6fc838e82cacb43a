// Serves the streams of workers: completion queues, one thread each, on which requests are read,
// carried out and answered. A stream stays with one queue; the streams of a worker's connections go
// to different ones.
#pragma once

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include <grpcpp/completion_queue.h>
#include <grpcpp/server_builder.h>

#include "common/mutex.h"
#include "server/parameter_service.h"

namespace leeway {

class StreamServer {
 public:
  // As many queues as there are processors, up to kQueuesMax. `service` outlives it; `builder` has
  // it registered, or will.
  StreamServer(ParameterService* service, grpc::ServerBuilder& builder);
  // After the gRPC server was shut down, before it is gone: what its queues still hold refers to it.
  ~StreamServer();

  // Once the gRPC server has been started.
  void Start();

 private:
  static constexpr uint32_t kQueuesMax = 16;

  void Await(grpc::ServerCompletionQueue* queue);
  void Loop(grpc::ServerCompletionQueue* queue);

  ParameterService* const service_;
  std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> queues_;
  std::vector<std::thread> threads_;
  Mutex mutex_;
  // Nothing may be begun on the queues any more.
  bool stopping_ GUARDED_BY(mutex_) = false;
};

}  // namespace leeway
