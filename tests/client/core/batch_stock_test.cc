#include "client/core/batch_stock.h"

#include <vector>

#include "tests/catch.h"

namespace leeway::batch_stock {
namespace {

v1::LeaseDataReply Reply(const std::vector<Interval>& held, bool over = false) {
  v1::LeaseDataReply reply;
  for (const Interval& run : held) {
    v1::DataRange* range = reply.add_held();
    range->set_first(run.first);
    range->set_count(run.size());
  }
  reply.set_over(over);
  return reply;
}

// Asks, and gives the answer.
v1::LeaseDataRequest Ask(BatchStock& stock, const std::vector<Interval>& held) {
  v1::LeaseDataRequest request;
  stock.Ask(request);
  stock.OnReply(Reply(held));
  return request;
}

TEST_CASE("stock: the first batches are those that are taken next") {
  BatchStock stock;
  CHECK(stock.First(3).empty());
  Ask(stock, {{4, 6}, {9, 12}});
  CHECK(stock.First(0).empty());
  CHECK(stock.First(4) == std::vector<uint64_t>{4, 5, 9, 10});
  CHECK(stock.First(10) == std::vector<uint64_t>{4, 5, 9, 10, 11});
  CHECK(stock.Take(0) == 4);
  CHECK(stock.First(2) == std::vector<uint64_t>{5, 9});
}

TEST_CASE("stock: batches are taken in order, and reported once their clock is complete") {
  BatchStock stock;
  CHECK_FALSE(stock.Take(0));
  CHECK(Ask(stock, {{4, 8}}).want() == BatchStock::kWantMin);
  CHECK(stock.Take(0) == 4);
  CHECK(stock.Take(1) == 5);
  CHECK(stock.Take(2) == 6);
  CHECK(stock.low());
  stock.Settle(2);
  const v1::LeaseDataRequest request = Ask(stock, {{6, 12}});
  REQUIRE(request.done_size() == 1);
  CHECK(request.done(0).first() == 4);
  CHECK(request.done(0).count() == 2);
  CHECK(request.done(0).clock() == 1);
  // A batch that is under way cannot be taken again.
  CHECK(stock.Take(3) == 7);
}

std::vector<Interval> Returned(const v1::LeaseDataRequest& request) {
  std::vector<Interval> runs;
  for (const v1::DataRange& range : request.returned()) {
    runs.push_back({range.first(), range.first() + range.count()});
  }
  return runs;
}

TEST_CASE("stock: a dropped clock's batches go back, until that is heard") {
  BatchStock stock;
  Ask(stock, {{0, 4}});
  stock.Take(0);
  stock.Take(1);
  stock.Settle(1, true);
  CHECK(stock.reports());
  CHECK(stock.Take(5) == 2);
  CHECK(stock.low());
  v1::LeaseDataRequest lost;
  stock.Ask(lost);
  CHECK(Returned(lost) == std::vector<Interval>{{1, 2}});
  stock.OnFailure();
  const v1::LeaseDataRequest request = Ask(stock, {{2, 4}});
  CHECK(Returned(request) == std::vector<Interval>{{1, 2}});
  CHECK(request.want() == BatchStock::kWantMin + 1);
  CHECK_FALSE(stock.reports());
  CHECK(stock.Take(6) == 3);
}

TEST_CASE("stock: what a worker makes no more steps for goes back") {
  BatchStock stock;
  Ask(stock, {{0, 2}, {5, 9}});
  stock.SetLeft(3);
  CHECK(stock.First(10) == std::vector<uint64_t>{0, 1, 5});
  CHECK(Returned(Ask(stock, {{0, 2}, {5, 6}})) == std::vector<Interval>{{6, 9}});
  CHECK(stock.Take(0) == 0);
  stock.SetLeft(2);
  CHECK_FALSE(stock.reports());
  CHECK(stock.Take(0) == 1);
  stock.SetLeft(1);
  CHECK(stock.Take(0) == 5);
  stock.SetLeft(0);
  // Asks for what is under way, and no more. Batches that come all the same are returned.
  CHECK(Ask(stock, {{0, 2}, {5, 7}}).want() == 3);
  CHECK(stock.empty());
  CHECK(Returned(Ask(stock, {{0, 2}, {5, 6}})) == std::vector<Interval>{{6, 7}});
}

TEST_CASE("stock: what is done while a question is under way is neither lost nor taken again") {
  BatchStock stock;
  Ask(stock, {{0, 4}});
  for (int i = 0; i < 3; ++i) stock.Take(0);
  v1::LeaseDataRequest request;
  stock.Ask(request);
  CHECK(request.want() == BatchStock::kWantMin + 3);
  stock.Settle(1);
  stock.Take(1);
  stock.OnReply(Reply({{0, 6}}));
  CHECK(stock.Take(2) == 4);
  CHECK(Ask(stock, {{3, 6}}).done_size() == 1);
}

TEST_CASE("stock: a report asks for nothing as long as there is enough") {
  BatchStock stock;
  Ask(stock, {{0, 4}});
  stock.Take(0);
  stock.Settle(1);
  CHECK(Ask(stock, {{1, 4}}).want() == 0);
  CHECK_FALSE(stock.none_left());
  for (int i = 0; i < 2; ++i) stock.Take(1);
  CHECK(stock.low());
  CHECK(Ask(stock, {{1, 4}}).want() == BatchStock::kWantMin + 2);
}

TEST_CASE("stock: what was taken away is forgotten") {
  BatchStock stock;
  Ask(stock, {{0, 4}});
  Ask(stock, {{9, 11}});
  CHECK(stock.Take(0) == 9);
}

TEST_CASE("stock: a report without an answer is made again") {
  BatchStock stock;
  Ask(stock, {{0, 4}});
  stock.Take(0);
  stock.Settle(1);
  v1::LeaseDataRequest lost;
  stock.Ask(lost);
  stock.OnFailure();
  CHECK(Ask(stock, {{1, 4}}).done_size() == 1);
  CHECK(Ask(stock, {{1, 4}}).done_size() == 0);
}

TEST_CASE("stock: it wants more after it ran out, unless there is no more") {
  BatchStock stock;
  stock.RanDry();
  CHECK(Ask(stock, {}).want() == 2 * BatchStock::kWantMin);
  CHECK(stock.none_left());
  CHECK_FALSE(stock.low());
  stock.RanDry();
  CHECK(Ask(stock, {}).want() == 2 * BatchStock::kWantMin);
  stock.OnReply(Reply({}, true));
  CHECK(stock.over());
}

}  // namespace
}  // namespace leeway::batch_stock
