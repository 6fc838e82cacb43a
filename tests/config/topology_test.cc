// With whom workers exchange.
#include "config/topology.h"

#include <string>

#include "config/job.h"
#include "config/shards.h"
#include "tests/catch.h"
#include "tests/config/bad_job.h"
#include "tests/config/sample_job.h"

namespace leeway::topology {
namespace {

using testing::ErrorOf;
using testing::Sample;

TEST_CASE("all_reduce goes with what every worker can hold") {
  // The sample is bounded.
  CHECK(
      ErrorOf(Sample("stop: {epochs: 2}\n", "topology: {type: all_reduce}\nstop: {epochs: 2}\n")) ==
      "job.yaml:15:11: topology: all_reduce goes with consistency.mode sync only, because each sum "
      "needs all workers; use mode: sync, or topology: {type: servers}");
  const auto error = [](const std::string& more) {
    std::string job = Sample("stop: {epochs: 2}\n",
                             "topology: {type: all_reduce}\n" + more + "stop: {epochs: 2}\n");
    const std::string bounded = "{mode: bounded, staleness: 3}";
    return ErrorOf(job.replace(job.find(bounded), bounded.size(), "{mode: sync}"));
  };
  CHECK(error("workers: {count: 3}\n") == "no error");
  CHECK(
      error(
          "workers: {count: 3}\nservers: {count: 9, shards: 12, replicas: 2, max: 10, min: 8}\n") ==
      "no error");
  CHECK(error("servers: {replicas: 2}\nworkers: {count: 1}\n") ==
        "job.yaml:16:21: servers.replicas: must be at most workers.count (1) with topology.type "
        "all_reduce: a block's holders are different workers");
  CHECK(
      error("security: {tls: {mode: tls, ca: a}}\n") ==
      "job.yaml:16:24: security.tls.mode: must be mtls with topology.type all_reduce, because each "
      "worker answers the others");
  CHECK(error("workers: {count: 4097}\n") ==
        "job.yaml:16:18: workers.count: must be at most 4096 with topology.type all_reduce");
  CHECK(ErrorOf(Sample("stop: {epochs: 2}\n", "topology: {type: mesh}\nstop: {epochs: 2}\n")) ==
        "job.yaml:15:18: topology.type: unknown type 'mesh'; use one of servers, all_reduce");
}

TEST_CASE("with all_reduce server 0 holds nothing, and each worker one shard") {
  std::string yaml =
      Sample("stop: {epochs: 2}\n",
             "workers: {count: 3}\nservers: {count: 7, max: 9}\nstop: {epochs: 2}\n");
  const std::string bounded = "{mode: bounded, staleness: 3}";
  yaml.replace(yaml.find(bounded), bounded.size(), "{mode: sync}");
  v1::TrainingJob job = ParseJob(yaml, "job.yaml", {}).value();
  CHECK(ServersOf(job) == 7);
  CHECK(ServerProcessesOf(job) == 7);
  CHECK(ServersMost(job) == 9);
  CHECK(FirstHolderOf(job) == 0);
  job = ParseJob(yaml, "job.yaml", {{"topology.type=all_reduce"}, {}}).value();
  CHECK(job.servers().count() == 1);
  CHECK(ServersOf(job) == 4);
  CHECK(ServerProcessesOf(job) == 1);
  CHECK(ShardsOf(job) == 3);
  CHECK(ServersMost(job) == 4);
  CHECK(FirstHolderOf(job) == 1);
  CHECK(ServerOfRank(2) == 3);
  // The resolved job takes another type, too.
  CHECK(ParseJob(ToYaml(job), "job.yaml", {{"topology.type=servers"}, {}}).ok());
}

}  // namespace
}  // namespace leeway::topology
