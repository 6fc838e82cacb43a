// Compression in whole jobs.
#include "server/node/listening.h"
#include "tests/skip.h"
#include "tests/whole/job_rig.h"

namespace leeway::compression {
namespace {

using testing::DigitsJob;
using testing::JobRig;
using testing::MustTrain;

TEST_CASE("auto is none where workers find that they are on their servers' host") {
  JobRig plain(DigitsJob({"stop.clocks=20"}));
  JobRig compressed(DigitsJob(
      {"stop.clocks=20", "compression={contributions: {type: auto}, weights: {type: auto}}"}));
  // The ports cannot be known before the servers listen.
  const auto own = AddressForOthers({.listen = "0.0.0.0:0", .coordinator = "192.0.2.1:1"});
  if (!own.ok()) SKIP("this machine has no address but loopback");
  compressed.listen = *own;
  CHECK(MustTrain(compressed).sha256 == MustTrain(plain).sha256);
}

}  // namespace
}  // namespace leeway::compression
