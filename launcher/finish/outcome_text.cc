#include "launcher/finish/outcome_text.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/counted.h"
#include "common/storage/storage.h"
#include "common/text/format.h"
#include "launcher/finish/test_result.h"

namespace leeway {
namespace {

// Returns the paths of the run's files that exist, one on each line.
std::string Places(const RunPlace& place) {
  const std::pair<const char*, const char*> files[] = {
      {"model", kModelFile},         {"average", kAverageModelFile},
      {"report", kReportFile},       {"curves", kCurvesFile},
      {"summary", kSummaryFile},     {"metrics", MetricsName(place.location)},
      {"checkpoints", "checkpoints"}};
  // An error of listing is ignored here, because another step reports it.
  const auto names = ListStored(place.location).value_or(std::vector<std::string>());
  std::string text;
  for (const auto& [what, file] : files) {
    if (std::find(names.begin(), names.end(), file) == names.end()) continue;
    absl::StrAppend(&text, "  ", PadRight(what, 12), place.location, "/", file, "\n");
  }
  if (place.in_store()) {
    absl::StrAppend(&text, "  ", PadRight("logs", 12), place.here, "/", kLogsFolder, "\n");
  }
  return text;
}

// Returns the share of dropped steps as the beginning of a list. Empty if no step was dropped.
std::string Dropped(const RunSummary& summary) {
  if (summary.total.dropped_steps() == 0) return "";
  const auto dropped = static_cast<double>(summary.total.dropped_steps());
  return absl::StrCat(Percent(dropped / (dropped + static_cast<double>(summary.total.steps()))),
                      " of the steps dropped, ");
}

std::string Overflowed(const RunSummary& summary) {
  if (summary.total.overflowed_steps() == 0) return "";
  return absl::StrCat(Counted(summary.total.overflowed_steps(), "step"), " left out by fp16, ");
}

std::string Replaced(const RunSummary& summary) {
  if (summary.total.replaced_pictures() == 0) return "";
  return absl::StrCat("damaged pictures replaced ",
                      Counted(summary.total.replaced_pictures(), "time"), ", ");
}

// If workers.device is `auto` and workers found no GPU, returns a text that says so.
std::string Devices(const RunSummary& summary) {
  const std::vector<std::string>& devices = summary.by_rank.devices;
  const auto cpus = static_cast<size_t>(std::count(devices.begin(), devices.end(), "cpu"));
  if (cpus == 0) return "";
  const std::string who =
      cpus == devices.size()
          ? "computed on the CPU, because no worker could use a GPU"
          : absl::StrCat(cpus, " of ", devices.size(),
                         " workers computed on the CPU, because they could not use a GPU");
  return absl::StrCat(who, " (workers.device: auto; see the workers' logs)\n");
}

std::string Restarts(const RunSummary& summary) {
  const uint32_t all = summary.restarts();
  const uint32_t servers =
      std::accumulate(summary.server_restarts.begin(), summary.server_restarts.end(), uint32_t{0});
  return absl::StrCat(all, all == 1 ? " restart" : " restarts",
                      servers > 0 ? absl::StrCat(", ", servers, " of servers") : "");
}

// Returns how often the job went back to a checkpoint, as the end of a list, or "" if never.
std::string WentBack(const RunSummary& summary) {
  if (summary.rewinds.times == 0) return "";
  return absl::StrCat(
      ", went back ",
      summary.rewinds.times == 1 ? "once" : absl::StrCat(summary.rewinds.times, " times"), ", ",
      Counted(summary.rewinds.clocks, "clock"), " done again");
}

}  // namespace

std::string DescribeOutcome(const RunSummary& summary, const RunPlace& place,
                            const std::string& data, const std::vector<std::string>& command) {
  std::string text = absl::StrCat(
      summary.state, ": ", Thousands(summary.total.steps()), " steps of ", summary.job.workers,
      summary.job.workers == 1 ? " worker" : " workers", " in ", Lasting(summary.seconds), "  (",
      Thousands(static_cast<uint64_t>(summary.samples_per_second)), " samples/s, ",
      Dropped(summary), Overflowed(summary), Replaced(summary), "staleness at most ",
      summary.total.staleness(), ", ", Restarts(summary), WentBack(summary), ")\n");
  if (summary.state == "finished" && !summary.message.empty()) {
    absl::StrAppend(&text, summary.message, "\n");
  }
  absl::StrAppend(&text, Devices(summary));
  if (summary.test) absl::StrAppend(&text, Describe(*summary.test, ""), "\n");
  if (!summary.learning.why.empty()) {
    absl::StrAppend(&text, "WARNING: ", summary.learning.why, "\n");
  }
  absl::StrAppend(&text, Places(place));
  if (summary.state != "finished" && summary.model.clock.has_value()) {
    absl::StrAppend(&text, "To go on: leeway train --resume --run-dir ", place.location,
                    data.empty() ? "" : " --data " + data,
                    command.empty() ? "" : " -- " + absl::StrJoin(command, " "), "\n");
  }
  return text;
}

}  // namespace leeway
