// Whole jobs whose workers combine their contributions, on several arrangements of hosts.
#include <algorithm>
#include <cmath>

#include "tests/whole/job_rig.h"

namespace leeway::combine_job {
namespace {

using testing::DigitsJob;
using testing::JobResult;
using testing::JobRig;
using testing::MustTrain;

constexpr char kDelta[] =
    "exchange={type: delta, local_steps: 4, optimizer: {type: sgd, learning_rate: 0.05}}";

// `hosts` has one letter for each rank, which names the rank's host.
JobResult Train(const std::string& hosts, const std::string& per_host,
                std::vector<std::string> sets) {
  sets.push_back("workers.count=" + std::to_string(hosts.size()));
  sets.push_back("workers.per_host=" + per_host);
  sets.emplace_back("stop.clocks=8");
  JobRig rig(DigitsJob(std::move(sets)));
  rig.memory_host = [hosts](uint32_t rank) { return std::string(1, hosts[rank]); };
  return MustTrain(rig);
}

// Returns the largest difference, relative to the largest weight.
double Apart(const JobResult& a, const JobResult& b) {
  REQUIRE(a.weights.size() == b.weights.size());
  double most = 0, largest = 0;
  for (size_t i = 0; i < a.weights.size(); ++i) {
    REQUIRE(std::isfinite(a.weights[i]));
    most = std::max<double>(most, std::abs(a.weights[i] - b.weights[i]));
    largest = std::max<double>(largest, std::abs(b.weights[i]));
  }
  return most / largest;
}

TEST_CASE("Hosts of any shape make the weights that their workers make by themselves") {
  const auto [hosts, exchange] = GENERATE(
      table<std::string, std::string>({{"aab", "exchange={type: gradient}"},
                                       {"aabb", "exchange={type: gradient}"},
                                       {"abcba", "exchange={type: gradient}"},
                                       {"abab", "exchange={type: gradient, accumulation: 3}"},
                                       {"baabc", kDelta}}));
  std::vector<std::string> sets = {exchange};
  if (exchange == kDelta) sets.emplace_back("update={type: sgd, learning_rate: 1}");
  CAPTURE(hosts, exchange);
  const JobResult combined = Train(hosts, "combine", sets);
  CHECK(Apart(combined, Train(hosts, "separate", sets)) < 1e-6);
  CHECK(Train(hosts, "combine", sets).sha256 == combined.sha256);
}

TEST_CASE("What rounds on the way goes with combined contributions, with the same bits each time") {
  const std::string set =
      GENERATE(as<std::string>(), "workers.precision=fp16", "workers.precision=bf16",
               "compression={contributions: {type: int8}, weights: {type: int8}}",
               "exchange={type: gradient, on_bad_gradient: clip, max_norm: 0.5}");
  CAPTURE(set);
  const JobResult combined = Train("aabb", "combine", {set});
  CHECK(Apart(combined, Train("aabb", "separate", {set})) < 0.05);
  CHECK(Train("aabb", "combine", {set}).sha256 == combined.sha256);
}

}  // namespace
}  // namespace leeway::combine_job
