#include "client/library/job_messages.h"

#include "tests/catch.h"

namespace leeway::job_messages {
namespace {

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

}  // namespace
}  // namespace leeway::job_messages
