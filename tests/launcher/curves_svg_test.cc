#include "launcher/report/curves_svg.h"

#include <cmath>

#include "absl/strings/match.h"
#include "tests/catch.h"
#include "tests/sample_run.h"

namespace leeway::curves_svg {
namespace {

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("The loss of a part of the run is the mean over its examples") {
  const auto all = BinnedLoss(SampleHistory(), std::nullopt, 4);
  REQUIRE(all.size() == 2);
  CHECK(all[0].x == Approx(0.5));
  CHECK(all[0].y == Approx(1.5));
  CHECK(all[1].y == Approx(0.5));
  CHECK(BinnedLoss(SampleHistory(), 1, 4).size() == 1);
}

TEST_CASE("The picture has curves, axes and names") {
  const std::string svg = CurvesSvg(SampleHistory(), "digits");
  CHECK(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  CHECK(svg.ends_with("</svg>\n"));
  for (const char* name :
       {"digits", "training loss", "test loss", "each worker", "test accuracy, %", "epochs"}) {
    CHECK(absl::StrContains(svg, std::string(">") + name + "</text>"));
  }
  CHECK(Count(svg, "<circle class=\"dot test\"") == 1);
  CHECK(Count(svg, "<circle class=\"dot acc\"") == 1);
  CHECK(Count(svg, "class=\"line train\"") == 2);
  CHECK(Count(svg, "<text") == Count(svg, "</text>"));
}

TEST_CASE("A title cannot break out of the picture") {
  const std::string svg = CurvesSvg(SampleHistory(), "<script>\"&'");
  CHECK_FALSE(absl::StrContains(svg, "<script>"));
  CHECK(absl::StrContains(svg, "&lt;script&gt;&quot;&amp;&#39;"));
}

TEST_CASE("Whatever a run has, every coordinate is a number") {
  RunHistory diverged = SampleHistory();
  diverged.steps[0].metrics.set_train_loss(std::nan(""));
  diverged.steps[2].metrics.set_train_loss(INFINITY);
  diverged.evaluations[0].set_test_loss(INFINITY);
  RunHistory squared = SampleHistory();
  squared.evaluations[0].clear_test_accuracy();
  for (const RunHistory& history : {RunHistory{}, diverged, squared}) {
    const std::string svg = CurvesSvg(history, "x");
    CHECK_FALSE(absl::StrContains(svg, "nan"));
    CHECK_FALSE(absl::StrContains(svg, "inf"));
  }
  CHECK(absl::StrContains(CurvesSvg(RunHistory{}, "x"), "no metrics yet"));
  CHECK_FALSE(absl::StrContains(CurvesSvg(squared, "x"), "test accuracy"));
}

TEST_CASE("A loss that falls far is drawn on a logarithmic axis") {
  RunHistory history;
  for (int i = 0; i < 100; ++i) {
    v1::StepMetrics& metrics = history.steps.emplace_back().metrics;
    metrics.set_epoch(i / 10.0);
    metrics.set_examples(10);
    metrics.set_train_loss(2 * std::exp(-i / 12.0));
  }
  CHECK(absl::StrContains(CurvesSvg(history, "x"), ">0.001</text>"));
}

}  // namespace leeway::curves_svg
