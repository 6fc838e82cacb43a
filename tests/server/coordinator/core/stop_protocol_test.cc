// What a record says of a stop. run_test.cc and early_stop_test.cc have stops of whole jobs.
#include "server/coordinator/core/stop_protocol.h"

#include "tests/catch.h"

namespace leeway::stop_protocol {
namespace {

TEST_CASE("stop: a record says what belongs to its outcome") {
  Commands commands;
  StopProtocol stop(commands);
  stop.Request("a person");
  v1::CoordinatorRecord record;
  stop.Fill(v1::JOB_STARTING, record);
  CHECK(record.message().empty());
  CHECK(record.stop_reason() == "a person");
  stop.Fill(v1::JOB_STOPPED, record);
  CHECK(record.message() == "a person");
  stop.Decide(v1::JOB_STOPPED);
  CHECK(stop.Finished().state == "stopped");
  stop.MarkPermanent();
  stop.Fail("why");
  stop.Fill(v1::JOB_FAILED, record);
  CHECK(record.message() == "why");
  CHECK(record.permanent());
  stop.Fill(v1::JOB_STARTING, record);
  CHECK_FALSE(record.permanent());
  stop.Decide(v1::JOB_FAILED);
  CHECK(stop.Finished().message == "why");
}

}  // namespace
}  // namespace leeway::stop_protocol
