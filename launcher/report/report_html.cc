#include "launcher/report/report_html.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "common/protocol.h"
#include "common/text/format.h"
#include "launcher/report/markup.h"
#include "launcher/report/report_style.h"
#include "run/core/figures.h"

namespace leeway {
namespace {

// The maximum number of events on the page. A job of many days has thousands of events, all of
// which are in metrics.jsonl.
constexpr size_t kEventsMax = 200;
// The end of the year 9999, in seconds since 1970.
constexpr double kSecondsMax = 253402300800.0;

std::string Tile(const std::string& value, const std::string& name) {
  return absl::StrCat("<div class=\"tile\"><b>", EscapeMarkup(value), "</b><span>",
                      EscapeMarkup(name), "</span></div>\n");
}

std::string Cell(const std::string& text, const char* style = "") {
  return absl::StrCat("<td class=\"", style, "\">", EscapeMarkup(text), "</td>");
}

std::string LocalTime(double seconds) {
  // Show no time of day outside of this calendar, because a damaged log may have any time.
  if (!(std::abs(seconds) < kSecondsMax)) return "";
  const auto time = static_cast<std::time_t>(seconds);
  std::tm local{};
  localtime_r(&time, &local);
  char text[32];
  std::strftime(text, sizeof(text), "%H:%M:%S", &local);
  return text;
}

std::string Header(const ReportInput& input) {
  const RunSummary& summary = input.summary;
  std::string html = absl::StrCat(
      "<h1>", EscapeMarkup(summary.job.name), " <span class=\"pill ", EscapeMarkup(summary.state),
      "\">", EscapeMarkup(summary.state), "</span></h1>\n<p class=\"sub\">", summary.job.servers,
      " server", summary.job.servers == 1 ? "" : "s", ", ", summary.job.workers, " worker",
      summary.job.workers == 1 ? "" : "s", " · ", EscapeMarkup(input.algorithm));
  if (summary.model.parameters > 0) {
    absl::StrAppend(&html, " · ", Thousands(summary.model.parameters), " parameters");
  }
  html += "</p>\n";
  if (!summary.message.empty()) {
    absl::StrAppend(&html, "<div class=\"why\">", EscapeMarkup(summary.message), "</div>\n");
  }
  if (!summary.learning.why.empty()) {
    absl::StrAppend(&html, "<div class=\"why\">", EscapeMarkup(summary.learning.why), "</div>\n");
  }
  for (const std::string& warning : summary.warnings) {
    absl::StrAppend(&html, "<div class=\"why warn\">", EscapeMarkup(warning), "</div>\n");
  }
  return html;
}

std::string TestTiles(const TestResult& test) {
  std::string html;
  const auto add = [&](bool shares) {
    for (const TestFigure& figure : TestFigures()) {
      const auto value = figure.In(test.metrics);
      if (figure.share != shares || !value) continue;
      html += Tile(shares ? Percent(*value) : LossText(*value), figure.title);
    }
  };
  add(true);
  const double loss = test.metrics.test_loss();
  html += Tile(LossText(loss), IsDiverged(loss) ? "test loss: diverged" : "test loss");
  if (test.perplexity.has_value()) html += Tile(LossText(*test.perplexity), "perplexity");
  add(false);
  return html;
}

std::string Tiles(const RunSummary& summary) {
  std::string html = "<section class=\"tiles\">\n";
  if (summary.test) html += TestTiles(*summary.test);
  html += Tile(Rate(summary.samples_per_second), "samples/s");
  html += Tile(Lasting(summary.seconds), "training time");
  html += Tile(Thousands(summary.total.steps()), "steps");
  html += Tile(std::to_string(summary.total.staleness()), "staleness");
  html += Tile(std::to_string(summary.restarts()), "restarts");
  if (summary.total.replaced_pictures() > 0) {
    html +=
        Tile(Thousands(summary.total.replaced_pictures()), "times a damaged picture was replaced");
  }
  if (summary.rewinds.times > 0) {
    html += Tile(std::to_string(summary.rewinds.times),
                 absl::StrCat("times back, ", Counted(summary.rewinds.clocks, "clock"), " again"));
  }
  return html + "</section>\n";
}

// Returns the compute time beside forward and backward, such as emulated slowness.
double OtherSeconds(const v1::StepMetrics& times) {
  return std::max(0.0,
                  times.compute_seconds() - times.forward_seconds() - times.backward_seconds());
}

std::string TimeBar(const v1::StepMetrics& times) {
  const double all = std::max(StepSeconds(times), 1e-9);
  std::string html = "<td><div class=\"bar\">";
  const auto part = [&](const char* name, double seconds) {
    absl::StrAppendFormat(&html, "<i class=\"%s\" style=\"width:%.1f%%\" title=\"%s %.1f %%\"></i>",
                          name, 100 * seconds / all, name, 100 * seconds / all);
  };
  part("data", times.data_seconds());
  part("forward", times.forward_seconds());
  part("backward", times.backward_seconds());
  part("other", OtherSeconds(times));
  part("wait", times.wait_seconds());
  return html + "</div></td>";
}

std::string HtmlWorkerRow(uint32_t rank, const v1::StepMetrics& worker, uint32_t restarts) {
  const double seconds = StepSeconds(worker);
  // For a worker whose steps were never timed, neither number is finite.
  const double rate = static_cast<double>(worker.examples()) / seconds;
  const double step = seconds / static_cast<double>(worker.steps());
  const std::optional<double> hidden = HiddenShare(worker);
  return absl::StrCat("<tr>", Cell(std::to_string(rank)), Cell(Thousands(worker.clock())),
                      Cell(Thousands(worker.steps())), Cell(Thousands(worker.examples())),
                      Cell(Rate(rate)), Cell(std::to_string(worker.staleness())),
                      Cell(std::to_string(restarts)), Cell(Milliseconds(step, 2)),
                      Cell(hidden.has_value() ? Fixed(100 * *hidden, 0) + " %" : "-"),
                      TimeBar(worker), "</tr>\n");
}

std::string Workers(const ReportInput& input) {
  std::string html =
      "<section "
      "class=\"card\"><h2>Workers</h2><table>\n<tr><th>rank</th><th>clock</th><th>steps</th>"
      "<th>examples</th><th>samples/s</th><th>staleness</th><th>restarts</th>"
      "<th>ms a step</th><th>hidden</th>"
      "<th class=\"left\">where a step's time goes</th></tr>\n";
  bool other = false;
  for (auto& [rank, worker] : SumByWorker(input.history)) {
    const auto& restarts = input.summary.by_rank.restarts;
    const auto& steps = input.summary.by_rank.steps;
    if (rank < steps.size()) worker.set_steps(steps[rank]);
    html += HtmlWorkerRow(rank, worker, rank < restarts.size() ? restarts[rank] : 0);
    other |= OtherSeconds(worker) > 0.001 * StepSeconds(worker);
  }
  html +=
      "</table><p class=\"note\"><span class=\"key data\"></span>reading data"
      "<span class=\"key forward\"></span>forward<span class=\"key backward\"></span>backward";
  if (other) html += "<span class=\"key other\"></span>other compute, emulated slowness";
  return html +
         "<span class=\"key wait\"></span>waiting for the servers<br>hidden: the share of the "
         "exchanges' time in which the worker went on computing</p></section>\n";
}

std::string Checkpoints(const ReportInput& input) {
  std::string html =
      "<section class=\"card\"><h2>Checkpoints</h2><table>\n<tr><th>clock</th><th>size</th>"
      "<th class=\"left\">folder</th></tr>\n";
  for (const RunFolder::Checkpoint& checkpoint : input.checkpoints) {
    absl::StrAppend(&html, "<tr>", Cell(Thousands(checkpoint.clock)), Cell(Bytes(checkpoint.bytes)),
                    "<td class=\"left\"><code>", EscapeMarkup(checkpoint.path),
                    "</code></td></tr>\n");
  }
  if (input.checkpoints.empty()) html += "<tr><td class=\"left\" colspan=\"3\">none</td></tr>\n";
  html += "</table>";
  if (!input.summary.model.weights_sha256.empty()) {
    absl::StrAppend(&html, "<p class=\"note\">SHA-256 of the weights<br><code>",
                    EscapeMarkup(input.summary.model.weights_sha256), "</code></p>");
  }
  return html + "</section>\n";
}

std::string Events(const RunHistory& history) {
  std::string html = "<section class=\"card\"><h2>Events</h2><div class=\"scroll\"><table>\n";
  const size_t first = history.events.size() > kEventsMax ? history.events.size() - kEventsMax : 0;
  if (const uint64_t earlier = history.events_left_out + first; earlier > 0) {
    absl::StrAppend(&html, "<tr><td class=\"left\" colspan=\"3\">", earlier,
                    " earlier ones are in metrics.jsonl</td></tr>\n");
  }
  for (size_t i = first; i < history.events.size(); ++i) {
    const RunHistory::Event& event = history.events[i];
    absl::StrAppend(&html, "<tr>", Cell(LocalTime(event.time), "left when"),
                    Cell(absl::StrReplaceAll(event.name, {{"_", " "}}), "left"),
                    Cell(event.details, "left wide"), "</tr>\n");
  }
  return html + "</table></div></section>\n";
}

}  // namespace

std::string ReportHtml(const ReportInput& input) {
  std::string html = absl::StrCat(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>",
      EscapeMarkup(input.summary.job.name), " · Leeway</title>\n<style>", kReportStyle,
      "</style>\n</head>\n<body>\n<main>\n");
  absl::StrAppend(&html, Header(input), Tiles(input.summary));
  absl::StrAppend(&html, "<section class=\"card\">", input.curves_svg, "</section>\n");
  absl::StrAppend(&html, Workers(input), Events(input.history), Checkpoints(input));
  absl::StrAppend(&html, "<section class=\"card\"><h2>Job</h2><pre>", EscapeMarkup(input.job_yaml),
                  "</pre></section>\n<footer>Leeway ", kVersion,
                  "</footer>\n</main>\n</body>\n</html>\n");
  return html;
}

}  // namespace leeway
