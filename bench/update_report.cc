#include "bench/update_report.h"

#include "absl/strings/str_cat.h"
#include "common/text/format.h"
#include "common/text/table.h"

namespace leeway {

std::string UpdateTable(const std::vector<UpdateResult>& results) {
  Table table({"rule", "payload", "writes", "contributions", "threads", "gradient GB/s",
               "moved GB/s", "limit GB/s", "share", "y += a x GB/s", "us a block"},
              3);
  for (const UpdateResult& row : results) {
    table.Add({row.rule, row.pieces ? "pieces" : "whole",
               row.keep_previous ? "another buffer" : "in place", std::to_string(row.contributions),
               std::to_string(row.threads), Fixed(1e-9 * row.gradient_bytes_per_second, 1),
               Fixed(1e-9 * row.moved_bytes_per_second, 1),
               Fixed(1e-9 * row.limit_bytes_per_second, 1), Fixed(row.share, 2),
               Fixed(1e-9 * row.axpy_bytes_per_second, 1), Fixed(1e6 * row.seconds_per_block, 1)});
  }
  return absl::StrCat(
      "Updates of a shard, block after block. Moved: every stream read or written, once.\n"
      "Limit: what the memory allows for these streams, from the rates of y += a x (two read, one\n"
      "written) and of reading alone, over memory of this size on as many threads in the same "
      "run.\n",
      table.ToString());
}

Json UpdateJson(const std::vector<UpdateResult>& results) {
  Json rows = Json::array();
  for (const UpdateResult& row : results) {
    rows.push_back({{"rule", row.rule},
                    {"contributions", row.contributions},
                    {"threads", row.threads},
                    {"pieces", row.pieces},
                    {"keep_previous", row.keep_previous},
                    {"gradient_bytes_per_second", row.gradient_bytes_per_second},
                    {"moved_bytes_per_second", row.moved_bytes_per_second},
                    {"limit_bytes_per_second", row.limit_bytes_per_second},
                    {"axpy_bytes_per_second", row.axpy_bytes_per_second},
                    {"share", row.share},
                    {"seconds_per_block", row.seconds_per_block}});
  }
  return rows;
}

}  // namespace leeway
