// Bounds on what servers hold, and on gradients, change how long a job takes, but never its result.
#include "tests/whole/job_rig.h"

namespace leeway::limits {
namespace {

using testing::DigitsJob;
using testing::JobResult;
using testing::JobRig;
using testing::MustTrain;

JobResult Train(const std::vector<std::string>& sets) {
  JobRig rig(DigitsJob(sets));
  return MustTrain(rig);
}

TEST_CASE("a server that may hold less than one block's contributions trains all the same bits") {
  // Three workers' contributions to a block of 4 KiB are three times the bound.
  const std::vector<std::string> job{"servers.block_bytes=4096", "stop.clocks=15"};
  for (const char* consistency :
       {"consistency={mode: sync}", "consistency={mode: bounded, staleness: 1}",
        "consistency={mode: async}", "consistency={mode: sync, backup_workers: 1}"}) {
    INFO(consistency);
    std::vector<std::string> bounded = job;
    bounded.insert(bounded.end(), {consistency, "transport.type=tcp", "limits.held_bytes=4096"});
    const std::string sha256 = Train(bounded).sha256;
    if (std::string(consistency) == "consistency={mode: sync}") CHECK(sha256 == Train(job).sha256);
  }
}

TEST_CASE("sync: of two workers that are ahead of the third a server holds what the bound says") {
  constexpr uint64_t kBlock = 256 << 10;
  // 19 blocks, each in a frame of its own.
  std::vector<std::string> job{
      "model.layers=[{dense: {units: 16384}}, {relu: {}}, {dense: {units: 10}}]",
      "servers={count: 1, block_bytes: 262144}", "transport={type: tcp, channels: 2}",
      "workers={count: 3, emulate: {step_milliseconds: 20, "
      "slow: [{ranks: [2], factor: 10}]}}",
      "stop.clocks=1"};
  const JobResult unbounded = Train(job);
  job.push_back("limits.held_bytes=4194304");
  const JobResult bounded = Train(job);
  CHECK(bounded.sha256 == unbounded.sha256);
  // Without refusals the servers hold everything that there is to hold.
  CHECK(unbounded.loads[0].refused_contributions == 0);
  CHECK(unbounded.loads[0].held_bytes_max > 32 * kBlock);
  CHECK(bounded.loads[0].refused_contributions > 0);
  // The bound, one contribution of each worker to the oldest block, and on each stream a frame of
  // at most two blocks that is being examined.
  CHECK(bounded.loads[0].held_bytes_max <= (16 + 3 + 3 * 2 * 2) * kBlock);
}

TEST_CASE(
    "sync: a clipped gradient does not hang on how the blocks are cut, nor on what carries it") {
  const std::string clip = "exchange={type: gradient, on_bad_gradient: clip, max_norm: 0.5}";
  const std::string once = Train({clip, "stop.clocks=20"}).sha256;
  CHECK(once != Train({"stop.clocks=20"}).sha256);
  for (const std::vector<std::string>& cut : std::vector<std::vector<std::string>>{
           {"servers={count: 3, block_bytes: 300}"},
           {"servers={count: 1, block_bytes: 1048576}", "transport.type=tcp"}}) {
    std::vector<std::string> sets{clip, "stop.clocks=20"};
    sets.insert(sets.end(), cut.begin(), cut.end());
    CHECK(Train(sets).sha256 == once);
  }
}

TEST_CASE("a job that leaves out what is too long goes on, with whoever's gradient is not") {
  // At first nothing is complete; still every clock is made.
  const JobResult result =
      Train({"exchange={type: gradient, on_bad_gradient: skip, max_norm: 0.001}", "stop.clocks=5"});
  CHECK(result.workers.size() == 3);
}

}  // namespace
}  // namespace leeway::limits
