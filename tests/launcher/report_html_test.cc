#include "launcher/report/report_html.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "launcher/finish/outcome_text.h"
#include "launcher/report/curves_svg.h"
#include "launcher/report/markup.h"
#include "tests/catch.h"
#include "tests/sample_run.h"

namespace leeway::report_html {
namespace {

ReportInput Sample() {
  ReportInput input;
  input.history = SampleHistory();
  input.summary.job.name = "digits";
  input.summary.state = "finished";
  input.summary.job.workers = 2;
  input.summary.test.emplace().metrics.set_test_accuracy(0.9712);
  input.summary.by_rank.restarts = {0, 1};
  AddHistory(input.history, input.summary);
  input.checkpoints = {{.clock = 20, .bytes = 2048, .path = "checkpoints/clock-000000020"}};
  input.job_yaml = "kind: TrainingJob # a < b\n";
  input.curves_svg = CurvesSvg(input.history, "digits");
  return input;
}

// Whether every opened tag is closed, in order; void elements and the doctype need no end.
bool Balanced(const std::string& html) {
  std::vector<std::string> open;
  for (size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
    const size_t end = html.find('>', at);
    if (end == std::string::npos) return false;
    const std::string tag = html.substr(at + 1, end - at - 1);
    const std::string name =
        tag.substr(tag[0] == '/' ? 1 : 0, tag.find_first_of(" /", 1) - (tag[0] == '/' ? 1 : 0));
    if (tag[0] == '!' || tag.back() == '/' || name == "meta" || name == "br") continue;
    if (tag[0] != '/') {
      open.push_back(name);
    } else if (open.empty() || open.back() != tag.substr(1)) {
      return false;
    } else {
      open.pop_back();
    }
  }
  return open.empty();
}

}  // namespace

TEST_CASE("Markup is escaped") {
  CHECK(EscapeMarkup("a<b>&\"c'") == "a&lt;b&gt;&amp;&quot;c&#39;");
  CHECK(EscapeMarkup("x\x01\n") == "x?\n");
}

TEST_CASE("The report is a whole page that fetches nothing") {
  const std::string html = ReportHtml(Sample());
  CHECK(html.starts_with("<!doctype html>"));
  CHECK(Balanced(html));
  for (const char* foreign : {"<script", "<link", "src=", "href=", "@import", "url("}) {
    CHECK_FALSE(absl::StrContains(html, foreign));
  }
}

TEST_CASE("The report tells figures, workers, checkpoints, events and the job") {
  const std::string html = ReportHtml(Sample());
  for (const char* part :
       {"<b>97.12 %</b><span>test accuracy</span>", "<b>192</b>", "finished</span>",
        "checkpoints/clock-000000020", "2.00 KiB", "worker lost", "no heartbeat &lt;10 s",
        "kind: TrainingJob # a &lt; b", "width:20.0%\" title=\"backward 20.0 %",
        "<td class=\"\">100.00</td><td class=\"\">40 %</td>", "emulated slowness"}) {
    CHECK(absl::StrContains(html, part));
  }
}

TEST_CASE("The figures of a summary keep their words on a page and on a terminal") {
  std::string text;
  for (const std::string& json : SampleSummaries()) {
    ReportInput input;
    input.summary = *ParseSummary(json, "summary.json");
    const std::string html = ReportHtml(input);
    CHECK(Balanced(html));
    const size_t begin = html.find("<h1>"), end = html.find("<section class=\"card\">");
    absl::StrAppend(&text, html.substr(begin, end - begin),
                    DescribeOutcome(input.summary, {"/none", "/none"}, ""));
  }
  CHECK(text == *ReadFile(LEEWAY_SOURCE_DIR "/tests/launcher/summaries.html", 1 << 20));
}

TEST_CASE("Nothing in a job can break out of the report") {
  ReportInput input = Sample();
  const std::string evil = "</pre><script>alert(1)</script>\"'";
  input.summary.job.name = input.summary.message = input.summary.state = input.algorithm = evil;
  input.job_yaml = input.summary.model.weights_sha256 = evil;
  input.history.events[0].details = input.history.events[0].name = evil;
  input.checkpoints[0].path = evil;
  const std::string html = ReportHtml(input);
  CHECK_FALSE(absl::StrContains(html, "<script"));
  CHECK(Balanced(html));
}

TEST_CASE("A run that failed before it trained still has a report") {
  ReportInput input;
  input.curves_svg = CurvesSvg(input.history, "x");
  CHECK(Balanced(ReportHtml(input)));
}

TEST_CASE("An event at no time of the calendar is reported without one") {
  ReportInput input;
  for (const double time : {std::nan(""), 1e300, -1e300}) {
    input.history.events.push_back({.time = time, .name = "worker_lost", .details = "rank 1"});
  }
  const std::string html = ReportHtml(input);
  CHECK(Balanced(html));
  CHECK(absl::StrContains(html, "<td class=\"left when\"></td>"));
}

TEST_CASE("A worker whose steps took no time has no rates") {
  ReportInput input;
  input.history.steps = {{.rank = 0}, {.rank = 1}};
  input.history.steps[0].metrics.set_steps(1);
  input.history.steps[0].metrics.set_examples(32);
  const std::string html = ReportHtml(input);
  CHECK(Balanced(html));
  CHECK(absl::StrContains(html, "<td class=\"\">32</td><td class=\"\">-</td>"));
  CHECK(absl::StrContains(html, "<td class=\"\">0</td><td class=\"\">-</td>"));
}

TEST_CASE("A loss of any size leaves the page its layout, and says that training has diverged") {
  for (const double loss : {1e75, 3e300, 1.7e308, double{INFINITY}, double{NAN}}) {
    RunHistory history = SampleHistory();
    for (RunHistory::Step& step : history.steps) step.metrics.set_train_loss(loss);
    for (v1::EvaluationMetrics& each : history.evaluations) each.set_test_loss(loss);
    ReportInput input;
    input.summary.test.emplace().metrics.set_test_loss(loss);
    AddHistory(history, input.summary);
    input.curves_svg = CurvesSvg(history, "diverged");
    input.history = history;
    const std::string html = ReportHtml(input);
    CHECK(html.find("test loss: diverged") != std::string::npos);
    // Numbers must be short enough to read.
    size_t longest = 0, digits = 0;
    for (const char c : html) {
      digits = c >= '0' && c <= '9' ? digits + 1 : 0;
      longest = std::max(longest, digits);
    }
    CHECK(longest < 20);
  }
}

TEST_CASE("Test curves go on, though a run was resumed with epochs that count otherwise") {
  RunHistory history = SampleHistory();
  history.evaluations.push_back(history.evaluations.front());
  history.evaluations[0].set_epoch(4);
  history.evaluations[1].set_epoch(3);
  const std::string svg = CurvesSvg(history, "resumed");
  const size_t path = svg.find("class=\"line test\" d=\"M", svg.find("</style>"));
  REQUIRE(path != std::string::npos);
  const double from = std::stod(svg.substr(svg.find("d=\"M", path) + 4));
  const double to = std::stod(svg.substr(svg.find('L', svg.find("d=\"M", path)) + 1));
  CHECK(from < to);
}

}  // namespace leeway::report_html
