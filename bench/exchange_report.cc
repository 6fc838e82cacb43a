#include "bench/exchange_report.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/base/percentiles_json.h"
#include "common/counted.h"
#include "common/text/format.h"
#include "common/text/table.h"

namespace leeway {
namespace {

Json ExchangeSideJson(const ExchangeFigures& figures) {
  return {{"step_seconds", figures.step_seconds},
          {"gigabytes_per_second", figures.gigabytes_per_second},
          {"cpu_seconds_per_gigabyte", figures.cpu_seconds_per_gigabyte},
          {"rounds_gigabytes_per_second", figures.rates}};
}

// What the raw limit adds to a row. "-" if it was not measured.
struct LimitTexts {
  std::string step = "-", rate = "-", share = "-", cpu = "-", cpu_ratio = "-";
};
LimitTexts TextsOf(const std::optional<RawLimit>& limit) {
  if (!limit.has_value()) return {};
  return {.step = Milliseconds(limit->raw.step_seconds.p50, 2),
          .rate = Fixed(limit->raw.gigabytes_per_second, 2),
          .share = Fixed(limit->share, 2),
          .cpu = Fixed(limit->raw.cpu_seconds_per_gigabyte, 2),
          .cpu_ratio = Fixed(limit->cpu_ratio, 2)};
}

}  // namespace

std::string ExchangeTable(const ExchangeBenchOptions& options,
                          const std::vector<ExchangeResult>& results) {
  Table table({"parameters", "transport", "block", "step p50 ms", "p90", "p99", "GB/s",
               "raw p50 ms", "raw GB/s", "share", "CPU s/GB", "raw", "ratio", "server peak",
               "workers' part", "idle", "bound"},
              2);
  for (const ExchangeResult& row : results) {
    const LimitTexts limit = TextsOf(row.limit);
    table.Add(
        {Thousands(row.parameters), NameOf(row.wire), Bytes(row.block_bytes),
         Milliseconds(row.leeway.step_seconds.p50, 2), Milliseconds(row.leeway.step_seconds.p90, 2),
         Milliseconds(row.leeway.step_seconds.p99, 2), Fixed(row.leeway.gigabytes_per_second, 2),
         limit.step, limit.rate, limit.share, Fixed(row.leeway.cpu_seconds_per_gigabyte, 2),
         limit.cpu, limit.cpu_ratio, Bytes(row.server_peak_bytes), Bytes(row.server_peers_bytes),
         Bytes(row.server_idle_bytes), Bytes(row.server_bound_bytes)});
  }
  return absl::StrCat(
      "Sync exchange of the whole vector, ", Counted(options.servers, "server"), ", ",
      Counted(options.workers, "worker"), ", update ", options.update,
      "; GB = 1e9 bytes, contributions and weights of all workers.\nRaw: the same "
      "bytes through bare sockets, without arithmetic. Bound: parameters x (2 + "
      "slots) x 1.15 + bytes in flight;\nidle: the server before it had a model; workers' part: "
      "the part of the peak that is mapped from their shared memory.\nShare, ratio: medians over "
      "the rounds, not quotients of the medians in the table.\n",
      table.ToString());
}

Json ExchangeJson(const std::vector<ExchangeResult>& results) {
  Json rows = Json::array();
  for (const ExchangeResult& row : results) {
    Json json = {{"parameters", row.parameters},
                 {"transport", NameOf(row.wire)},
                 {"block_bytes", row.block_bytes},
                 {"leeway", ExchangeSideJson(row.leeway)},
                 {"server_peak_bytes", row.server_peak_bytes},
                 {"server_peers_bytes", row.server_peers_bytes},
                 {"server_idle_bytes", row.server_idle_bytes},
                 {"server_bound_bytes", row.server_bound_bytes}};
    if (row.limit.has_value()) {
      json["raw"] = ExchangeSideJson(row.limit->raw);
      json["share"] = row.limit->share;
      json["cpu_ratio"] = row.limit->cpu_ratio;
    }
    rows.push_back(std::move(json));
  }
  return rows;
}

}  // namespace leeway
