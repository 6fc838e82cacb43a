// A run's metrics.jsonl, from reading it as `leeway report` does to the page.
#include "launcher/report/curves_svg.h"
#include "launcher/report/report_html.h"
#include "run/history.h"
#include "tests/fuzz/fuzz_input.h"

namespace leeway::history {
namespace {

void Report(const std::string& text) {
  RunHistory history = ParseHistory(text);
  ReportInput input;
  input.summary.by_rank.restarts.assign(2, 0);
  AddHistory(history, input.summary);
  Promise(!SummaryJson(input.summary).empty(), "every history has a summary");
  input.curves_svg = CurvesSvg(history, "fuzz");
  input.history = std::move(history);
  Promise(!ReportHtml(input).empty(), "every history has a page");
}

}  // namespace
FUZZ_TARGET(history) { Report(TextOf(input.Rest())); }

}  // namespace leeway::history
