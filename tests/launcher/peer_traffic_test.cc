#include "launcher/plan/peer_traffic.h"

#include "tests/catch.h"

namespace leeway::peer_traffic {
namespace {

constexpr uint64_t kModel = 4 << 20;

std::string Text(const v1::Topology& topology, uint32_t workers, bool async = false,
                 bool known = true) {
  v1::TrainingJob job;
  job.mutable_workers()->set_count(workers);
  *job.mutable_topology() = topology;
  if (async) job.mutable_consistency()->set_mode(v1::CONSISTENCY_MODE_ASYNC);
  if (!known) return PeerTrafficText(job, std::nullopt);
  return PeerTrafficText(job, PlannedTraffic{kModel, kModel, ""});
}

v1::Topology AllReduce(v1::AllReduceAlgorithm algorithm) {
  v1::Topology topology;
  topology.mutable_all_reduce()->set_algorithm(algorithm);
  return topology;
}

v1::Topology Gossip(v1::GossipGraph graph, uint32_t group = 2) {
  v1::Topology topology;
  topology.mutable_gossip()->set_graph(graph);
  topology.mutable_gossip()->set_group(group);
  return topology;
}

TEST_CASE("an all-reduce says to whom a worker sends 2 (n - 1) / n of the model") {
  CHECK(Text({}, 4) == "");
  CHECK(Text(AllReduce(v1::ALL_REDUCE_ALGORITHM_DIRECT), 4) ==
        "All-reduce: each worker holds 1/4 of the blocks and exchanges with all others; over the "
        "network it sends and receives 6.00 MiB a clock, 2.00 MiB with each\n");
  CHECK(Text(AllReduce(v1::ALL_REDUCE_ALGORITHM_RING), 4) ==
        "All-reduce, ring: each worker holds 1/4 of the blocks; rank r sends 6.00 MiB a clock to "
        "rank r + 1 only, and receives as much from rank r - 1, in 6 hops\n");
  CHECK(Text(AllReduce(v1::ALL_REDUCE_ALGORITHM_TREE), 8) ==
        "All-reduce, tree: each worker holds 1/8 of the blocks; rank r sends each of the ranks r - "
        "d and r + d 2.00 MiB for d = 1, 1.00 MiB for d = 2 and 512 KiB for d = 4; that is 7.00 "
        "MiB a clock, and it receives as much, in 6 hops\n");
  CHECK(Text(AllReduce(v1::ALL_REDUCE_ALGORITHM_TREE), 5, false, false) ==
        "All-reduce, tree: each worker holds 1/5 of the blocks; rank r sends each of the ranks r - "
        "d and r + d 0.40 x the model for d = 1, 0.20 x the model for d = 2 and 0.20 x the model "
        "for d = 4; that is 1.60 x the model a clock, and it receives as much, in 6 hops\n");
  CHECK(Text(AllReduce(v1::ALL_REDUCE_ALGORITHM_RING), 1) ==
        "All-reduce: the only worker holds all blocks\n");
}

TEST_CASE("gossip says whose weights a worker fetches, and how fast all are the same") {
  const std::string mean =
      "Mean: each worker holds 1/8 of the mean; every 10 clocks, at each checkpoint and at the end "
      "it exchanges the mean with the others, up to 3.50 MiB in each direction\n";
  const std::string contraction =
      "Contraction: a clock without steps multiplies the distance from the mean of all weights by ";
  CHECK(Text(Gossip(v1::GOSSIP_GRAPH_RING), 8) ==
        "Gossip, ring: in each clock rank r fetches the weights of the ranks r - 1 and r + 1, 4.00 "
        "MiB each, and sends as much\n" +
            mean + contraction + "0.805, so its half-life in clocks is 3.2\n");
  CHECK(Text(Gossip(v1::GOSSIP_GRAPH_EXPONENTIAL), 8) ==
        "Gossip, exponential: in each clock a worker fetches the weights of one rank, 1, 2 and 4 "
        "before it in turn, 4.00 MiB, and sends as much\n" +
            mean + "Contraction: 0; after 3 clocks without steps all weights are their mean\n");
  CHECK(Text(Gossip(v1::GOSSIP_GRAPH_RANDOM), 8) ==
        "Gossip, random: in each clock a worker fetches the weights of the others in its group of "
        "2, 4.00 MiB each, and sends as much\n" +
            mean + contraction + "0.655, so its half-life in clocks is 1.6\n");
  CHECK_THAT(Text(Gossip(v1::GOSSIP_GRAPH_RANDOM, 3), 8), Catch::Contains("group of at most 3, "));
  CHECK(Text(Gossip(v1::GOSSIP_GRAPH_RING), 8, true) ==
        "Gossip: in each of its clocks a worker meets another one, drawn at random, and sends and "
        "receives 4.00 MiB; on average one other worker meets it, with as much\n" +
            mean + contraction + "0.540, so its half-life in clocks is 1.1\n");
  CHECK_THAT(Text(Gossip(v1::GOSSIP_GRAPH_EXPONENTIAL), 6),
             Catch::EndsWith("; with a power of two of workers, and not 6, it would vanish\n"));
  CHECK(Text(Gossip(v1::GOSSIP_GRAPH_RING), 2) ==
        "Gossip: in each clock a worker fetches the weights of the other one, 4.00 MiB, and sends "
        "as much\nMean: each worker holds 1/2 of the mean; every 10 clocks, at each checkpoint and "
        "at the end it exchanges the mean with the others, up to 2.00 MiB in each direction\n"
        "Contraction: 0; after 1 clock without steps all weights are their mean\n");
  CHECK(Text(Gossip(v1::GOSSIP_GRAPH_RING), 1) ==
        "Gossip: the only worker has no other to mix with\n");
}

}  // namespace
}  // namespace leeway::peer_traffic
