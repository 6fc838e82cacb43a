#include "server/service/parameter_service.h"

#include "tests/catch.h"
#include "tests/server/service/stream_rig.h"

namespace leeway::parameter_service {
namespace {

using testing::Served;

v1::CommitSetRequest SetOf(uint64_t job, uint64_t generation) {
  v1::CommitSetRequest request;
  request.set_job(job);
  request.set_generation(generation);
  request.add_ranks(0);
  return request;
}

TEST_CASE(
    "a server that holds nothing yet takes the sets of clocks, so that it is told what to hold") {
  ParameterService service;
  CHECK(service.CommitSet(SetOf(1, 0)).ok());
  // Sets of the generation before are not reported any more.
  service.table().Serve({1, 2, {}, {}, nullptr});
  CHECK(service.CommitSet(SetOf(1, 3)).ok());
  CHECK(absl::IsFailedPrecondition(service.CommitSet(SetOf(1, 1))));
  CHECK(absl::IsFailedPrecondition(service.CommitSet(SetOf(7, 2))));
}

TEST_CASE(
    "a generation that no coordinator can have reached is nonsense, a later one is waited for") {
  ParameterService service;
  service.table().Serve({1, 2, {}, {}, nullptr});
  CHECK(absl::IsUnavailable(service.table().CheckHeld(1, 3)));
  const absl::Status absurd = service.table().CheckHeld(1, ~uint64_t{0});
  CHECK(absl::IsInvalidArgument(absurd));
  CHECK_THAT(std::string(absurd.message()),
             Catch::Contains("header.generation: ") && Catch::Contains("is at generation 2"));
}

TEST_CASE("who asks for a block that another server has by now is sent on, not refused") {
  Served served(v1::CONSISTENCY_MODE_ASYNC);
  v1::ExchangeHeader header;
  header.set_job(testing::kJob);
  const auto shard = served.service.table().Find(header);
  REQUIRE(shard.ok());
  ParameterService service;
  // The server has shard 0 of two.
  service.table().Serve({testing::kJob, 0, {*shard, nullptr}, {nullptr, nullptr}, nullptr});
  header.set_block(0);
  CHECK(service.table().Find(header).ok());
  header.set_block(1);
  CHECK(absl::IsUnavailable(service.table().Find(header).status()));
  // No shard has this block, which is for the shard to say.
  header.set_block(99);
  CHECK(service.table().Find(header).ok());
}

}  // namespace
}  // namespace leeway::parameter_service
