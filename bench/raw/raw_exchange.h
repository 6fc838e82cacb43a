// Measures the raw limit of a sync exchange: the same bytes between the same processes in the same
// pattern on bare sockets, without any arithmetic. Every worker sends each server that server's
// blocks, one block per message. As soon as all workers have sent a block, the server sends it back
// to all workers. The step is over when every worker has every block.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/base/bench_process.h"
#include "bench/raw/raw_socket.h"

namespace leeway {

struct RawExchangePlan {
  uint64_t total_floats = 0;
  uint32_t servers = 0;
  uint64_t block_floats = 0;
};

// Make the services of a server and a worker. `sockets` has one socket to each worker, or to each
// server. The director sends {"clocks": n} to all processes at about the same time. A worker
// answers {"seconds": [one for each step]}.
BenchService RawExchangeServer(std::vector<RawSocket> sockets, const RawExchangePlan& plan,
                               uint32_t server);
BenchService RawExchangeWorker(std::vector<RawSocket> sockets, const RawExchangePlan& plan);

}  // namespace leeway
