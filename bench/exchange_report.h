// Formats the results of `leeway bench exchange`.
#pragma once

#include <string>
#include <vector>

#include "bench/base/bench_process.h"
#include "bench/exchange_bench.h"

namespace leeway {

std::string ExchangeTable(const ExchangeBenchOptions& options,
                          const std::vector<ExchangeResult>& results);
// [{"parameters", "transport", "block_bytes", "leeway": {"step_seconds": {p50, p90, p99, max},
//   "gigabytes_per_second", "cpu_seconds_per_gigabyte"}, "raw", "share", "cpu_ratio",
//   "server_peak_bytes", "server_peers_bytes", "server_idle_bytes", "server_bound_bytes"}]
// without "raw", "share" and "cpu_ratio" where the raw limit was not measured.
Json ExchangeJson(const std::vector<ExchangeResult>& results);

}  // namespace leeway
