// The coordinator's gRPC adaptor. It turns each message into one call to the core, which answers at
// once. It streams workers' states between the network and the checkpoint sink.
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

  // Accepts calls on `queue` from now on. Call this function once the gRPC server runs. `queue`
  // must outlive the service.
  void Await(ServerQueue* queue);

 private:
  void AwaitMembership(ServerQueue* queue);
  void AwaitCheckpoints(ServerQueue* queue);
  void AwaitStatus(ServerQueue* queue);

  CoordinatorHost& host_;
};

}  // namespace leeway
