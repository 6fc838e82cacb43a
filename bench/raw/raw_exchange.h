// The raw limit of a sync exchange: the same bytes between the same processes in the same pattern
// on bare sockets, without any arithmetic. Every worker sends every server its share of the vector,
// one block in each message. A server sends a block back to all workers as soon as all have sent
// theirs. The step is over when every worker has every block.
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

// `sockets` has one socket to each worker, or to each server. All processes are told {"clocks": n}
// at about the same time. A worker answers {"seconds": [one for each step]}.
BenchService RawExchangeServer(std::vector<RawSocket> sockets, const RawExchangePlan& plan,
                               uint32_t server);
BenchService RawExchangeWorker(std::vector<RawSocket> sockets, const RawExchangePlan& plan);

}  // namespace leeway
