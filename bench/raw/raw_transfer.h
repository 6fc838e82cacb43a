// Measures the raw limit of a transport benchmark over sockets: two processes, one connection,
// blocking calls, and one thread for each direction. They do the same work as Leeway. For a push
// the server receives into a buffer and does y += a x over its parameters. For a pull it sends the
// parameters, and the worker receives them into its weights.
#pragma once

#include "bench/base/bench_process.h"
#include "bench/base/transfer.h"
#include "bench/raw/raw_socket.h"

namespace leeway {

// Make the services of the two processes. `socket` is the process's end of the connection. The
// director sends {"round": seconds} to both for a round. The client answers {"messages",
// "seconds"}.
BenchService RawTransferServer(RawSocket socket, const TransferPlan& plan);
BenchService RawTransferClient(RawSocket socket, const TransferPlan& plan);

}  // namespace leeway
