// The gRPC adaptor: each message is one question to the core, answered at once; streams of worker
// state go between the network and the checkpoint sink.
#pragma once

#include "common/service/admitted_service.h"
#include "leeway/v1/coordinator.grpc.pb.h"
#include "server/coordinator/worker_state_streams.h"

namespace leeway {

class CoordinatorHost;
class ServerQueue;

// Thread-safe.
class CoordinatorService final : public AdmittedService<WorkerStateMethods> {
 public:
  explicit CoordinatorService(CoordinatorHost& host)
      : AdmittedService("leeway.v1.Coordinator"), host_(host) {}

  // Awaits calls on `queue`, which outlives the service, from now on: once the gRPC server runs.
  void Await(ServerQueue* queue);

 private:
  void AwaitMembership(ServerQueue* queue);
  void AwaitCheckpoints(ServerQueue* queue);
  void AwaitStatus(ServerQueue* queue);

  CoordinatorHost& host_;
};

}  // namespace leeway
