#include "launcher/report/curves_svg.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "launcher/report/axis.h"
#include "launcher/report/markup.h"

namespace leeway {
namespace {

using Curve = std::vector<CurvePoint>;

// The layout of the picture, in pixels.
constexpr double kWidth = 760;
constexpr double kLeft = 64;
constexpr double kRight = 744;
constexpr double kLossTop = 56;
constexpr double kLossHeight = 240;
constexpr double kAccuracyHeight = 150;
constexpr double kGap = 44;
constexpr double kBelow = 48;
// If the loss falls by more than this factor, its axis is logarithmic.
constexpr double kLogarithmicRatio = 20;
constexpr int kBins = 100;
// The width of a letter in the widest usual font.
constexpr double kLegendLetter = 6.8;
// The maximum number of curves for single workers. A reader could not distinguish more.
constexpr size_t kWorkerLinesMax = 12;

// Colours with enough contrast on both backgrounds; the text follows the reader's colour scheme.
constexpr char kStyle[] = R"css(<style>
.curves{--ink:#1f2933;--dim:#697586;--grid:#e4e7eb;--ground:#ffffff;--train:#2563eb;--test:#d9480f;--acc:#087f5b}
@media (prefers-color-scheme:dark){.curves{--ink:#e6e9ee;--dim:#98a2b3;--grid:#2d3540;--ground:#15191f;--train:#6ea8fe;--test:#ff922b;--acc:#38d9a9}}
.curves .ground{fill:var(--ground)}
.curves text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:var(--dim)}
.curves .title{font-size:15px;font-weight:600;fill:var(--ink)}
.curves .name{fill:var(--ink)}
.curves .grid{stroke:var(--grid);stroke-width:1}
.curves .line{fill:none;stroke-linejoin:round;stroke-linecap:round;stroke-width:2}
.curves .train{stroke:var(--train)}.curves .test{stroke:var(--test)}.curves .acc{stroke:var(--acc)}
.curves .worker{stroke:var(--train);stroke-width:1;opacity:.28}
.curves .dot{stroke:var(--ground);stroke-width:1.5}
.curves .dot.test{fill:var(--test)}.curves .dot.acc{fill:var(--acc)}
</style>)css";

struct Panel {
  Axis x;
  Axis y;
  double top;
  double bottom;
};

std::string SvgText(double x, double y, absl::string_view anchor, absl::string_view style,
                    const std::string& text) {
  return absl::StrFormat("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" class=\"%s\">%s</text>\n",
                         x, y, anchor, style, EscapeMarkup(text));
}

std::string Grid(const Panel& panel) {
  std::string svg;
  for (const Axis::Tick& tick : panel.y.ticks()) {
    absl::StrAppendFormat(
        &svg, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", kLeft,
        kRight, tick.position, tick.position);
    svg += SvgText(kLeft - 8, tick.position + 4, "end", "tick", tick.label);
  }
  return svg;
}

std::string EpochTicks(const Panel& panel) {
  std::string svg;
  for (const Axis::Tick& tick : panel.x.ticks()) {
    absl::StrAppendFormat(
        &svg, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
        tick.position, tick.position, panel.bottom, panel.bottom + 5);
    svg += SvgText(tick.position, panel.bottom + 19, "middle", "tick", tick.label);
  }
  svg += SvgText((kLeft + kRight) / 2, panel.bottom + 38, "middle", "tick", "epochs");
  return svg;
}

std::string SvgLine(const Curve& curve, const Panel& panel, absl::string_view style) {
  if (curve.size() < 2) return "";
  std::string svg = absl::StrCat("<path class=\"line ", style, "\" d=\"");
  for (size_t i = 0; i < curve.size(); ++i) {
    absl::StrAppendFormat(&svg, "%c%.1f %.1f", i == 0 ? 'M' : 'L', panel.x(curve[i].x),
                          panel.y(curve[i].y));
  }
  return absl::StrCat(svg, "\"/>\n");
}

std::string Dots(const Curve& curve, const Panel& panel, absl::string_view style) {
  std::string svg;
  // If there are many evaluations, only the last one gets a dot.
  for (size_t i = curve.size() > 40 ? curve.size() - 1 : 0; i < curve.size(); ++i) {
    absl::StrAppendFormat(&svg, "<circle class=\"dot %s\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n",
                          style, panel.x(curve[i].x), panel.y(curve[i].y));
  }
  return svg;
}

// Draws the names of the curves, each beside a piece of its line, from right to left.
std::string Legend(double y, const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string svg;
  double x = kRight;
  for (const auto& [name, style] : entries) {
    x -= kLegendLetter * static_cast<double>(name.size()) + 28;
    absl::StrAppendFormat(&svg, "<path class=\"line %s\" d=\"M%.1f %.1fh20\"/>\n", style, x, y);
    svg += SvgText(x + 27, y + 4, "start", "name", name);
    x -= 16;
  }
  return svg;
}

// Sorts the curve by epoch, so that it never runs backwards. A run that was resumed with other
// workers counts its epochs differently.
Curve InOrder(Curve curve) {
  std::stable_sort(curve.begin(), curve.end(),
                   [](const CurvePoint& a, const CurvePoint& b) { return a.x < b.x; });
  return curve;
}

Curve TestLoss(const RunHistory& history) {
  Curve curve;
  for (const v1::EvaluationMetrics& evaluation : history.evaluations) {
    if (!std::isfinite(evaluation.test_loss())) continue;
    curve.push_back({evaluation.epoch(), evaluation.test_loss()});
  }
  return InOrder(std::move(curve));
}

Curve TestAccuracy(const RunHistory& history) {
  Curve curve;
  for (const v1::EvaluationMetrics& evaluation : history.evaluations) {
    if (!evaluation.has_test_accuracy()) continue;
    curve.push_back({evaluation.epoch(), 100 * evaluation.test_accuracy()});
  }
  return InOrder(std::move(curve));
}

double LastEpoch(const RunHistory& history) {
  double last = 0;
  for (const RunHistory::Step& step : history.steps) last = std::max(last, step.metrics.epoch());
  for (const v1::EvaluationMetrics& point : history.evaluations)
    last = std::max(last, point.epoch());
  return last > 0 ? last : 1;
}

struct Bounds {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void Add(const Curve& curve) {
    for (const CurvePoint& point : curve) {
      low = std::min(low, point.y);
      high = std::max(high, point.y);
    }
  }
  bool empty() const { return low > high; }
};

Axis LossAxis(const Bounds& bounds, double top, double bottom) {
  if (bounds.empty()) return Axis::Linear(0, 1, bottom, top, 5);
  if (bounds.low > 0 && bounds.high / bounds.low > kLogarithmicRatio) {
    return Axis::Logarithmic(bounds.low / 1.1, bounds.high * 1.1, bottom, top);
  }
  return Axis::Linear(std::min(0.0, bounds.low), bounds.high, bottom, top, 5);
}

std::string LossPanel(const RunHistory& history, double epochs, bool with_epochs) {
  const Curve train = BinnedLoss(history, std::nullopt, kBins);
  const Curve test = TestLoss(history);
  Bounds bounds;
  bounds.Add(train);
  bounds.Add(test);
  const double bottom = kLossTop + kLossHeight;
  const Panel panel{Axis::Exact(0, epochs, kLeft, kRight, 10), LossAxis(bounds, kLossTop, bottom),
                    kLossTop, bottom};
  std::string svg = Grid(panel);
  std::set<uint32_t> ranks;
  for (const RunHistory::Step& step : history.steps) ranks.insert(step.rank);
  std::vector<std::pair<std::string, std::string>> legend;
  if (ranks.size() > 1 && ranks.size() <= kWorkerLinesMax) {
    for (const uint32_t rank : ranks)
      svg += SvgLine(BinnedLoss(history, rank, kBins / 2), panel, "worker");
    legend.push_back({"each worker", "worker"});
  }
  absl::StrAppend(&svg, SvgLine(train, panel, "train"), SvgLine(test, panel, "test"),
                  Dots(test, panel, "test"));
  if (!test.empty()) legend.insert(legend.begin(), {"test loss", "test"});
  legend.push_back({"training loss", "train"});
  svg += Legend(kLossTop - 14, legend);
  if (bounds.empty())
    svg += SvgText((kLeft + kRight) / 2, kLossTop + 120, "middle", "name", "no metrics yet");
  return with_epochs ? svg + EpochTicks(panel) : svg;
}

std::string AccuracyPanel(const Curve& accuracy, double epochs, double top) {
  Bounds bounds;
  bounds.Add(accuracy);
  const double bottom = top + kAccuracyHeight;
  const double low = std::max(0.0, std::min(bounds.low - 1, 99.0));
  const Panel panel{Axis::Exact(0, epochs, kLeft, kRight, 10),
                    Axis::Linear(low, std::min(100.0, bounds.high + 0.2), bottom, top, 4), top,
                    bottom};
  return absl::StrCat(Grid(panel), SvgLine(accuracy, panel, "acc"), Dots(accuracy, panel, "acc"),
                      Legend(top - 14, {{"test accuracy, %", "acc"}}), EpochTicks(panel));
}

}  // namespace

std::vector<CurvePoint> BinnedLoss(const RunHistory& history, std::optional<uint32_t> rank,
                                   int bins) {
  const double width = LastEpoch(history) / bins;
  struct Bin {
    double epoch = 0, loss = 0, weight = 0;
  };
  std::vector<Bin> sums(bins);
  for (const RunHistory::Step& step : history.steps) {
    if (rank.has_value() && step.rank != *rank) continue;
    const v1::StepMetrics& metrics = step.metrics;
    if (metrics.examples() == 0 || !metrics.has_train_loss()) continue;
    if (!std::isfinite(metrics.train_loss())) continue;
    const auto weight = static_cast<double>(metrics.examples());
    Bin& bin = sums[std::clamp(static_cast<int>(metrics.epoch() / width), 0, bins - 1)];
    bin.epoch += weight * metrics.epoch();
    bin.loss += weight * metrics.train_loss();
    bin.weight += weight;
  }
  std::vector<CurvePoint> curve;
  for (const Bin& bin : sums) {
    const double loss = bin.loss / bin.weight;
    if (bin.weight > 0 && std::isfinite(loss)) curve.push_back({bin.epoch / bin.weight, loss});
  }
  return curve;
}

std::string CurvesSvg(const RunHistory& history, const std::string& title) {
  const Curve accuracy = TestAccuracy(history);
  const double epochs = LastEpoch(history);
  const double loss_bottom = kLossTop + kLossHeight;
  const double bottom = accuracy.empty() ? loss_bottom : loss_bottom + kGap + kAccuracyHeight;
  const double height = bottom + kBelow;
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"curves\" viewBox=\"0 0 %.0f %.0f\" "
      "width=\"%.0f\" height=\"%.0f\" role=\"img\" aria-label=\"%s\">\n",
      kWidth, height, kWidth, height, EscapeMarkup("Loss and accuracy of " + title));
  absl::StrAppend(&svg, kStyle,
                  "\n<rect class=\"ground\" width=\"100%\" height=\"100%\" rx=\"8\"/>\n");
  absl::StrAppend(&svg, SvgText(kLeft, 26, "start", "title", title));
  svg += LossPanel(history, epochs, accuracy.empty());
  if (!accuracy.empty()) svg += AccuracyPanel(accuracy, epochs, loss_bottom + kGap);
  return svg + "</svg>\n";
}

}  // namespace leeway
