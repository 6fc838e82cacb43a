// Formats the results of `leeway bench update`.
#pragma once

#include <string>
#include <vector>

#include "bench/base/bench_process.h"
#include "bench/update_bench.h"

namespace leeway {

std::string UpdateTable(const std::vector<UpdateResult>& results);
// [{"rule", "contributions", "threads", "pieces", "keep_previous", "gradient_bytes_per_second",
//   "moved_bytes_per_second", "limit_bytes_per_second", "axpy_bytes_per_second", "share",
//   "seconds_per_block"}]
Json UpdateJson(const std::vector<UpdateResult>& results);

}  // namespace leeway
