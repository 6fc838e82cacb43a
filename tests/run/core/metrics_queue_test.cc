#include "run/core/metrics_queue.h"

#include "tests/catch.h"

namespace leeway::metrics_queue {
namespace {

using std::chrono::milliseconds;

v1::StepMetrics Metrics(uint64_t clock, uint64_t examples, double loss, uint64_t staleness = 0) {
  v1::StepMetrics metrics;
  metrics.set_clock(clock);
  metrics.set_steps(1);
  metrics.set_examples(examples);
  metrics.set_train_loss(loss);
  metrics.set_staleness(staleness);
  metrics.set_compute_seconds(0.5);
  return metrics;
}

TEST_CASE("Clocks within a twentieth of a second are one record, weighted by examples") {
  MetricsQueue queue;
  const Time start{};
  queue.Add(Metrics(1, 10, 4, 2), start);
  queue.Add(Metrics(2, 30, 2, 7), start + milliseconds(49));
  queue.Add(Metrics(3, 0, 0), start + milliseconds(49));
  queue.Add(Metrics(4, 10, 1), start + milliseconds(50));
  const auto records = queue.Take();
  REQUIRE(records.size() == 2);
  CHECK(records[0].clock() == 3);
  CHECK(records[0].steps() == 3);
  CHECK(records[0].examples() == 40);
  CHECK(records[0].train_loss() == Approx(2.5));
  CHECK(records[0].staleness() == 7);
  CHECK(records[0].compute_seconds() == 1.5);
  CHECK(records[1].clock() == 4);
  CHECK(queue.empty());
}

TEST_CASE("Clocks that tell no loss do not count in the mean of the others") {
  MetricsQueue queue;
  v1::StepMetrics silent = Metrics(1, 100, 0);
  silent.clear_train_loss();
  queue.Add(silent, Time{});
  silent.set_clock(2);
  queue.Add(silent, Time{});
  auto records = queue.Take();
  REQUIRE(records.size() == 1);
  CHECK_FALSE(records[0].has_train_loss());
  queue.Add(records[0], Time{});
  queue.Add(Metrics(3, 10, 4), Time{});
  records = queue.Take();
  REQUIRE(records.size() == 1);
  CHECK(records[0].train_loss() == Approx(4));
  CHECK(records[0].examples() == 210);
}

TEST_CASE("Records that did not arrive go out again, before newer ones") {
  MetricsQueue queue;
  queue.Add(Metrics(1, 1, 1), Time{});
  auto lost = queue.Take();
  queue.Add(Metrics(2, 1, 1), Time{} + milliseconds(500));
  queue.PutBack(std::move(lost));
  const auto records = queue.Take();
  REQUIRE(records.size() == 2);
  CHECK(records[0].clock() == 1);
  CHECK(records[1].clock() == 2);
}

TEST_CASE("A queue that nobody empties stays bounded and loses no count") {
  MetricsQueue queue;
  const uint64_t count = MetricsQueue::kRecordsMax + 100;
  for (uint64_t i = 1; i <= count; ++i) queue.Add(Metrics(i, 1, 1), Time{} + i * milliseconds(60));
  const auto records = queue.Take();
  CHECK(records.size() == MetricsQueue::kRecordsMax);
  CHECK(records.back().clock() == count);
  CHECK(records.back().examples() == 101);
}

}  // namespace
}  // namespace leeway::metrics_queue
