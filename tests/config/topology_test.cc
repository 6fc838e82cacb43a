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
        "job.yaml:15:18: topology.type: unknown type 'mesh'; use one of servers, all_reduce, "
        "gossip");
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

// Returns the sample in sync mode with this exchange and these keys, and without an `update`.
std::string SyncSample(const std::string& exchange, const std::string& more) {
  std::string job = Sample("{type: gradient}", exchange);
  const std::string knobs =
      "consistency: {mode: bounded, staleness: 3}\nupdate: {type: sgd, learning_rate: 0.1}\n";
  return job.replace(job.find(knobs), knobs.size(), more);
}

const char* const kDelta =
    "{type: delta, local_steps: 1, optimizer: {type: sgd, learning_rate: 0.1}}";

TEST_CASE("a ring or a tree takes what a sum on its way can carry") {
  const auto error = [](const std::string& algorithm, const std::string& more) {
    return ErrorOf(SyncSample("{type: gradient}",
                              "update: {type: sgd, learning_rate: 0.1}\ntopology: {type: "
                              "all_reduce, algorithm: " +
                                  algorithm + "}\n" + more));
  };
  for (const char* algorithm : {"direct", "ring", "tree"}) {
    CHECK(error(algorithm, "workers: {count: 3}\n") == "no error");
    CHECK(error(algorithm, "compression: {weights: {type: none}}\n") == "no error");
  }
  const std::string compression = "compression: {contributions: {type: bf16}}\n";
  const std::string rounded =
      ", because each worker on the way would round the sum again; leave it out, or use algorithm: "
      "direct";
  CHECK(error("ring", compression) ==
        "job.yaml:15:14: compression: does not go with topology.algorithm ring" + rounded);
  CHECK(error("tree", "compression: {layers: [{names: dense_1, weights: {type: auto}}]}\n") ==
        "job.yaml:15:14: compression: does not go with topology.algorithm tree" + rounded);
  CHECK(error("direct", compression) == "no error");
  const std::string lost = "workers: {count: 3, on_worker_loss: continue}\n";
  const std::string whole =
      ", because a sum that travels from worker to worker cannot leave one out; ";
  CHECK(error("ring", lost) ==
        "job.yaml:15:37: workers.on_worker_loss: continue does not go with topology.algorithm "
        "ring" +
            whole + "set on_worker_loss: wait, or use algorithm: direct");
  CHECK(error("direct", lost) == "no error");
  const std::string backup = "workers: {count: 3}\nconsistency: {backup_workers: 1}\n";
  CHECK(error("tree", backup) ==
        "job.yaml:16:31: consistency.backup_workers: does not go with topology.algorithm tree" +
            whole + "leave it out, or use algorithm: direct");
  CHECK(error("direct", backup) == "no error");
  const auto delta = [](const std::string& more) {
    std::string exchange = kDelta;
    exchange.insert(exchange.size() - 1, more);
    return ErrorOf(SyncSample(exchange,
                              "update: {type: sgd, learning_rate: 1}\ntopology: {type: "
                              "all_reduce, algorithm: ring}\n"));
  };
  CHECK(delta("") == "no error");
  CHECK(delta(", weighting: equal") ==
        "job.yaml:12:96: exchange.weighting: equal does not go with topology.algorithm ring, "
        "because each worker adds its change times its examples; leave it out, or use algorithm: "
        "direct");
  CHECK(delta(", spread: true") ==
        "job.yaml:12:93: exchange.spread: does not go with topology.algorithm ring, because each "
        "worker weighs all blocks of a clock alike, but spread blocks have different numbers of "
        "examples; leave it out, or use algorithm: direct");
  const std::string combine = "workers: {count: 3, per_host: combine}\n";
  CHECK(error("ring", combine) ==
        "job.yaml:15:31: workers.per_host: combine does not go with topology.algorithm ring, "
        "because each worker adds to the sum that it passes on; leave it out, or set per_host: "
        "separate");
  CHECK(error("direct", combine) == "no error");
}

TEST_CASE("gossip takes local steps, and makes the blocks the mean of all weights") {
  const auto error = [](const std::string& topology, const std::string& more,
                        const std::string& exchange = kDelta) {
    return ErrorOf(SyncSample(exchange, "topology: {type: gossip" + topology + "}\n" + more));
  };
  const std::string three = "workers: {count: 3}\n";
  CHECK(error("", three) == "no error");
  CHECK(error("", "") == "no error");
  CHECK(error("", three + "consistency: {mode: async}\n") == "no error");
  CHECK(error("", three + "update: {type: sgd, learning_rate: 1}\n") == "no error");
  CHECK(error(", graph: random", "") == "no error");
  CHECK(error(", graph: random, group: 3, mean_every: 1", three) == "no error");
  CHECK(error(", graph: exponential", three) == "no error");
  CHECK(error("", three, "{type: gradient}") ==
        "job.yaml:13:11: topology: gossip goes with a delta exchange only, because each worker has "
        "weights of its own, which its own optimizer moves; use exchange: {type: delta, "
        "local_steps: 1, optimizer: {type: sgd, learning_rate: 0.05}}, or another topology");
  CHECK_THAT(error("", three, "{type: elastic, optimizer: {type: sgd, learning_rate: 1}}"),
             Catch::StartsWith("job.yaml:13:11: topology: gossip goes with a delta exchange only"));
  CHECK(error("", three + "consistency: {mode: bounded, staleness: 2}\n") ==
        "job.yaml:15:21: consistency.mode: bounded gossip is not there yet: use mode: sync or "
        "async");
  const std::string lossy = "workers: {count: 3, on_worker_loss: continue}\n";
  CHECK(error("", lossy) ==
        "job.yaml:13:11: topology: gossip in sync mode needs all neighbours of each clock, so it "
        "goes neither with on_worker_loss: continue nor with backup_workers: leave them out, or "
        "use mode: async, in which a lost worker costs the others nothing");
  CHECK(error("", lossy + "consistency: {mode: async}\n") == "no error");
  CHECK(error(", graph: random, group: 4", three) ==
        "job.yaml:13:48: topology.group: must be at most workers.count (3)");
  CHECK(error(", group: 2", three) ==
        "job.yaml:13:33: topology.group: goes with graph: random only, which draws groups of this "
        "size: leave it out, or set graph: random");
  CHECK(error(", mean_every: 0", three) ==
        "job.yaml:13:38: topology.mean_every: must be at least 1; it is 0");
  CHECK(error(", graph: torus", three) ==
        "job.yaml:13:33: topology.graph: unknown value 'torus'; use one of ring, exponential, "
        "random");
}

TEST_CASE("gossip has no rule, weights, codec or sum besides the mean") {
  const auto error = [](const std::string& more, const std::string& delta = "") {
    std::string exchange = kDelta;
    exchange.insert(exchange.size() - 1, delta);
    return ErrorOf(SyncSample(exchange, "topology: {type: gossip}\n" + more));
  };
  const std::string update =
      "job.yaml:14:9: update: must be {type: sgd, learning_rate: 1} with topology.type gossip, "
      "because the blocks become the mean of all weights: leave it out (--set update=), and give "
      "the rule of the workers' steps as exchange.optimizer";
  CHECK(error("update: {type: sgd, learning_rate: 0.7}\n") == update);
  CHECK(error("update: {type: sgd, learning_rate: 1, momentum: 0.9}\n") == update);
  CHECK(error("update: {type: adam, learning_rate: 1}\n") == update);
  CHECK(error("update: {type: sgd, learning_rate: 1, scaling: linear}\n") == update);
  CHECK(error("update: {type: sgd, learning_rate: 1, schedule: {type: cosine}}\n") == update);
  CHECK(error("update: {type: sgd, learning_rate: 1, average: {decay: 0.9}}\n") ==
        "job.yaml:14:48: update.average: does not go with topology.type gossip, whose blocks are a "
        "mean of the workers' weights already: leave it out");
  CHECK(error("", ", weighting: examples") ==
        "job.yaml:12:96: exchange.weighting: must be equal with topology.type gossip, because each "
        "worker has the same weight in the mean: leave it out");
  CHECK(error("", ", spread: true") ==
        "job.yaml:12:93: exchange.spread: does not go with topology.type gossip, because a worker "
        "publishes all its weights at the end of a clock: leave it out");
  CHECK(error("compression: {weights: {type: int8}}\n") ==
        "job.yaml:14:14: compression: does not go with topology.type gossip, because what a codec "
        "loses of a worker's own weights stays lost; leave it out");
  CHECK_THAT(error("workers: {count: 2, per_host: combine}\n"),
             Catch::StartsWith("job.yaml:14:31: workers.per_host: combine "));
  CHECK(error("workers: {count: 1}\nservers: {replicas: 2}\n") ==
        "job.yaml:15:21: servers.replicas: must be at most workers.count (1) with topology.type "
        "gossip: a block's holders are different workers");
  CHECK(error("workers: {count: 4097}\n") ==
        "job.yaml:14:18: workers.count: must be at most 4096 with topology.type gossip");
  CHECK(error("security: {tls: {mode: tls, ca: a}}\n") ==
        "job.yaml:14:24: security.tls.mode: must be mtls with topology.type gossip, because each "
        "worker answers the others");
}

TEST_CASE("a gossip job gets the rule of the mean, and a second holder of each block") {
  const auto resolved = [](const std::string& topology, const std::string& more) {
    const std::string yaml =
        SyncSample(kDelta, "topology: {type: gossip" + topology + "}\n" + more);
    const v1::TrainingJob job = ParseJob(yaml, "job.yaml", {}).value();
    // The resolved job stays as it is.
    const absl::StatusOr<v1::TrainingJob> again = ParseJob(ToYaml(job), "job.yaml", {});
    CHECK(again.ok());
    if (again.ok()) CHECK(ToYaml(*again) == ToYaml(job));
    return job;
  };
  const std::string three = "workers: {count: 3}\n";
  const v1::TrainingJob job = resolved("", three);
  CHECK(job.update().has_sgd());
  CHECK(job.update().learning_rate() == 1);
  CHECK(job.update().schedule().has_constant());
  CHECK(job.exchange().delta().weighting() == v1::WEIGHTING_EQUAL);
  CHECK(job.servers().replicas() == 2);
  CHECK(job.topology().gossip().mean_every() == 10);
  CHECK_FALSE(job.topology().gossip().has_group());
  CHECK(WorkersHoldBlocks(job));
  CHECK(WorkersFetch(job));
  CHECK(ServersOf(job) == 4);
  CHECK(std::string(TopologyType(job)) == "gossip");
  CHECK(resolved("", three + "servers: {replicas: 1}\n").servers().replicas() == 1);
  CHECK(resolved("", "").servers().replicas() == 1);
  const v1::Gossip random = resolved(", graph: random", three).topology().gossip();
  CHECK(random.graph() == v1::GOSSIP_GRAPH_RANDOM);
  CHECK(random.group() == 2);
  CHECK(resolved(", graph: random, group: 3", three).topology().gossip().group() == 3);
  CHECK(resolved(", mean_every: 4", three).topology().gossip().mean_every() == 4);
  // The resolved job goes on with other topologies.
  const JobOverrides servers = {{"topology.type=servers", "servers.count=2"}, {}};
  CHECK(ParseJob(ToYaml(job), "job.yaml", servers).ok());
  CHECK(ParseJob(ToYaml(job), "job.yaml", {{"topology.type=all_reduce"}, {}}).ok());
  // In async mode a worker meets any other one.
  const std::string async = three + "consistency: {mode: async}\n";
  const v1::Gossip meets = resolved(", graph: random, group: 3", async).topology().gossip();
  CHECK_FALSE(meets.has_graph());
  CHECK_FALSE(meets.has_group());
}

TEST_CASE("workers fetch from each other with a ring, a tree or gossip") {
  v1::TrainingJob job;
  CHECK_FALSE(WorkersFetch(job));
  job.mutable_topology()->mutable_all_reduce();
  CHECK_FALSE(WorkersFetch(job));
  job.mutable_topology()->mutable_all_reduce()->set_algorithm(v1::ALL_REDUCE_ALGORITHM_RING);
  CHECK(WorkersFetch(job));
  job.mutable_topology()->mutable_all_reduce()->set_algorithm(v1::ALL_REDUCE_ALGORITHM_TREE);
  CHECK(WorkersFetch(job));
  CHECK_FALSE(IsGossip(job));
  job.mutable_topology()->mutable_gossip();
  CHECK(WorkersFetch(job));
  CHECK(IsGossip(job));
}

}  // namespace
}  // namespace leeway::topology
