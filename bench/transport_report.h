// Formats the results of `leeway bench transport`.
#pragma once

#include <string>

#include "bench/base/bench_process.h"
#include "bench/transport_bench.h"

namespace leeway {

std::string TransportTable(const TransportBenchResult& result);

// {"transfers": [{"method", "transport", "codec", "reply_codec", "travel_share", "block_bytes",
//   "blocks", "in_flight", "leeway": {...}, "raw": {...}, "share", "cpu_ratio",
//   "server_peak_bytes", "parameter_bytes", "in_flight_bytes"}],
//  "exchanges": [{"transport", "in_flight", "leeway", "ping", "ratio"}]}
// where each side has messages_per_second, gigabytes_per_second, cpu_seconds_per_gigabyte,
// latency_seconds {p50, p90, p99, max} and every round's rates.
Json TransportJson(const TransportBenchResult& result);

}  // namespace leeway
