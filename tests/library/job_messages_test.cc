#include "library/job_messages.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/catch.h"

namespace leeway::job_messages {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("a job's last version is one for each clock in sync, else one for each contribution") {
  v1::RegisterWorkerReply reply;
  reply.mutable_job()->mutable_workers()->set_count(3);
  reply.mutable_length()->set_clocks(60);
  v1::Consistency& consistency = *reply.mutable_job()->mutable_consistency();
  consistency.set_mode(v1::CONSISTENCY_MODE_SYNC);
  CHECK(LastVersion(reply) == 60);
  consistency.set_mode(v1::CONSISTENCY_MODE_BOUNDED);
  CHECK(LastVersion(reply) == 180);
  consistency.set_mode(v1::CONSISTENCY_MODE_ASYNC);
  reply.mutable_length()->set_total_clocks(175);
  CHECK(LastVersion(reply) == 175);
}

TEST_CASE("a program hears whether the job moves the rate by itself") {
  v1::RegisterWorkerReply reply;
  v1::Schedule& schedule = *reply.mutable_job()->mutable_update()->mutable_schedule();
  schedule.mutable_constant();
  CHECK_FALSE(InfoFrom(reply).has_schedule);
  schedule.mutable_cosine();
  CHECK(InfoFrom(reply).has_schedule);
  schedule.mutable_constant();
  schedule.mutable_warm_up()->set_clocks(2);
  CHECK(InfoFrom(reply).has_schedule);
}

TEST_CASE("a program's rates are parts of all trained elements") {
  CHECK(*RatesFrom({}, 9) == nullptr);
  const std::vector<JobRate> rates = {{4, 0.5}, {6, -1, true}, {9, 0}};
  const auto parts = RatesFrom(rates, 9);
  REQUIRE(parts.ok());
  REQUIRE((*parts)->size() == 3);
  CHECK((*parts)->at(0).end == 4);
  CHECK((*parts)->at(0).rate == 0.5);
  CHECK((*parts)->at(1).skip);
  CHECK((*parts)->at(2).rate == 0);
  CHECK((*parts)->at(2).decay == 1);
  CHECK_FALSE((*parts)->at(2).skip);
  for (const auto& [wrong, text] : std::vector<std::pair<std::vector<JobRate>, std::string>>{
           {{{4, 1}}, "rates[0].end: is 4; the last end must be 9, the number of trained elements"},
           {{{10, 1}}, "rates[0].end: is 10; it must be above 0"},
           {{{4, 1}, {4, 1}, {9, 1}}, "rates[1].end: is 4; it must be above 4"},
           {{{9, -1}}, "rates[0].factor: is -1"},
           {{{9, NAN}}, "rates[0].factor: is nan"},
           {{{9, INFINITY}}, "rates[0].factor: is inf"},
           {std::vector<JobRate>(kRatesMax + 1),
            "at most 16384 are allowed; join neighbouring parts"}}) {
    const absl::Status status = RatesFrom(wrong, 9).status();
    CHECK(absl::IsInvalidArgument(status));
    CHECK_THAT(std::string(status.message()), Contains(text));
  }
}

}  // namespace
}  // namespace leeway::job_messages
