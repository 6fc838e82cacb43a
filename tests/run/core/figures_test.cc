// A new figure of a step is a field of v1::StepMetrics and a line of the table. All else follows,
// and is shown here for each field of the message: this file stays as it is.
#include "run/core/figures.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "run/core/metrics_check.h"
#include "run/history.h"
#include "run/metrics_log.h"
#include "tests/catch.h"

namespace leeway::figures {
namespace {

using Catch::Matchers::Contains;

// Returns the metrics of one step of one example with this figure, and what it is logged with.
v1::StepMetrics With(double value, const Figure& figure) {
  v1::StepMetrics metrics;
  metrics.set_steps(1);
  metrics.set_examples(1);
  if (figure.logged_with == "dropped_steps") metrics.set_dropped_steps(1);
  if (figure.logged_with == "loss_scale") metrics.set_loss_scale(1);
  figure.IsCount() ? figure.Set(static_cast<uint64_t>(value), metrics) : figure.Set(value, metrics);
  return metrics;
}

double ValueIn(const v1::StepMetrics& metrics, const Figure& figure) {
  return figure.IsCount() ? static_cast<double>(figure.Count(metrics)) : figure.Real(metrics);
}

std::string Refusal(double value, const Figure& figure) {
  v1::HeartbeatRequest request;
  *request.add_steps() = With(value, figure);
  return std::string(CheckMetrics(request, 1000).message());
}

void CheckFigure(const Figure& figure) {
  const double most = figure.name == absl::string_view("clock") ? 1000 : figure.most;
  CHECK(Refusal(3, figure).empty());
  if (most != Figure::kAny) {
    CHECK(Refusal(most, figure).empty());
    CHECK_THAT(Refusal(most * 1.01, figure), Contains(absl::StrCat(".", figure.name, ": is ")));
    CHECK((figure.IsCount() || !Refusal(-1, figure).empty() && !Refusal(NAN, figure).empty()));
  }
  v1::StepMetrics merged = With(3, figure);
  MergeMetrics(With(figure.merge == Merge::kNewestKnown ? 0 : 2, figure), merged);
  const double one = figure.merge == Merge::kNewest ? 2 : figure.merge == Merge::kMean ? 2.5 : 3;
  CHECK(ValueIn(merged, figure) == (figure.merge == Merge::kSum ? 5 : one));
  // It is logged and read back, also into the sum over a worker's steps.
  const std::string line = MetricsLine(StepRecord{5, With(3, figure)}, 1.5);
  CHECK_THAT(line, Contains(absl::StrCat("\"", figure.name, "\":3")));
  CHECK(ValueIn(ParseHistory(line + "\n").told, figure) == 3);
  CHECK(ValueIn(SumByWorker(ParseHistory(line + "\n")).at(5), figure) == 3);
}

TEST_CASE("every field of a step's metrics is checked, merged, logged and read back") {
  const auto& message = *v1::StepMetrics::descriptor();
  CHECK(StepFigures().size() == static_cast<size_t>(message.field_count()));
  for (int i = 0; i < message.field_count(); ++i) {
    INFO("StepMetrics." << message.field(i)->name() << ", for which figures.cc needs a line");
    const auto found = std::ranges::find(StepFigures(), message.field(i)->name(), &Figure::name);
    REQUIRE(found != StepFigures().end());
    CheckFigure(*found);
  }
}

TEST_CASE("every figure of an evaluation is logged where it is told, and read back") {
  // An evaluation always has clock, epoch, test_loss and examples.
  CHECK(TestFigures().size() + 4 ==
        static_cast<size_t>(v1::EvaluationMetrics::descriptor()->field_count()));
  for (const TestFigure& figure : TestFigures()) {
    INFO(figure.name);
    EvaluationRecord record;
    CHECK_THAT(MetricsLine(record, 1.5), !Contains(figure.name));
    (record.metrics.*figure.set)(0.5);
    const std::string line = MetricsLine(record, 1.5);
    CHECK_THAT(line, Contains(absl::StrCat("\"", figure.name, "\":0.5")));
    CHECK(figure.In(ParseHistory(line + "\n").evaluations.at(0)) == 0.5);
  }
}

}  // namespace
}  // namespace leeway::figures
