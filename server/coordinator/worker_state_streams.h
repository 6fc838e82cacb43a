// Streams the state that workers keep between clocks to a checkpoint and back.
#pragma once

#include "leeway/v1/coordinator.grpc.pb.h"

namespace leeway {

class CoordinatorHost;
class ServerQueue;

// The streaming methods of the service.
using WorkerStateMethods = v1::Coordinator::WithAsyncMethod_SaveWorkerState<
    v1::Coordinator::WithAsyncMethod_LoadWorkerState<v1::Coordinator::Service>>;

// Serves both methods. SaveWorkerState writes the chunks to the sink as they come, and reports the
// file to the core. LoadWorkerState reads a rank's state from the sink and sends the state in
// chunks.
void AwaitWorkerStates(CoordinatorHost& host, WorkerStateMethods& service, ServerQueue* queue);

}  // namespace leeway
