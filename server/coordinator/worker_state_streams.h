// What workers keep between clocks, on its way to a checkpoint and back.
#pragma once

#include <grpcpp/support/server_callback.h>

#include "leeway/v1/coordinator.pb.h"

namespace leeway {

class CoordinatorHost;

// Writes the chunks to the sink as they come, and reports the file to the core. Deletes itself.
grpc::ServerReadReactor<v1::WorkerStateChunk>* ReceiveWorkerState(CoordinatorHost& host);

// Reads the rank's state from the sink and sends it in chunks. Deletes itself.
grpc::ServerWriteReactor<v1::WorkerStateChunk>* SendWorkerState(
    CoordinatorHost& host, const v1::LoadWorkerStateRequest& request);

}  // namespace leeway
