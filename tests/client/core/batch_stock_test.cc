#include "client/core/batch_stock.h"

#include <optional>
#include <utility>
#include <vector>

#include "tests/catch.h"

namespace leeway {
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

// What is asked for, and answered.
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
  // What is under way is not for taking once more.
  CHECK(stock.Take(3) == 7);
}

TEST_CASE("stock: a dropped clock's batches are trained on again") {
  BatchStock stock;
  Ask(stock, {{0, 4}});
  stock.Take(0);
  stock.Take(1);
  stock.Settle(1, true);
  CHECK(stock.Take(5) == 1);
  CHECK(stock.reports());
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
}  // namespace leeway
