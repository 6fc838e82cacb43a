// The raw limit of a transport benchmark over sockets: two processes, one connection, blocking
// calls, one thread a direction, doing the same work as Leeway's: the server receives into a buffer
// and does y += a x over its parameters, or sends from them; the worker receives into its weights.
#pragma once

#include "bench/base/bench_process.h"
#include "bench/base/transfer.h"
#include "bench/raw/raw_socket.h"

namespace leeway {

// The two processes' services; `socket` is the process's end of one connection. Both are told
// {"round": seconds} for a round. The client's answer: {"messages", "seconds"}.
BenchService RawTransferServer(RawSocket socket, const TransferPlan& plan);
BenchService RawTransferClient(RawSocket socket, const TransferPlan& plan);

}  // namespace leeway
