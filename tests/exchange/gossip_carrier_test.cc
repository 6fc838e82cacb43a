// Workers that mix their weights with those of some others (exchange/carriers/gossip_carrier.h).

#include "exchange/carriers/gossip_carrier.h"

#include <chrono>
#include <cmath>
#include <memory>
#include <vector>

#include "config/gossip_graph.h"
#include "tests/catch.h"
#include "tests/exchange/peer_rig.h"

namespace leeway::gossip_carrier {
namespace {

using testing::FakeModel;
using testing::PeerProcesses;
using testing::PeerWorker;

constexpr uint64_t kTotal = 22;

v1::TrainingJob JobOf(v1::GossipGraph graph, v1::ConsistencyMode mode, uint32_t workers) {
  v1::TrainingJob job;
  v1::Gossip& gossip = *job.mutable_topology()->mutable_gossip();
  gossip.set_graph(graph);
  gossip.set_group(2);
  gossip.set_mean_every(1000000);
  job.mutable_workers()->set_count(workers);
  job.mutable_exchange()->mutable_delta();
  job.mutable_consistency()->set_mode(mode);
  job.mutable_metadata()->set_seed(5);
  return job;
}

// Workers of one job, with blocks of 4 elements, whose weights begin at different values.
struct Crowd {
  Crowd(v1::GossipGraph graph, v1::ConsistencyMode mode, uint32_t workers, double lost = 0,
        uint64_t seed = 1)
      : job(JobOf(graph, mode, workers)), processes(workers) {
    processes.lost = lost;
    model = std::make_shared<FakeModel>(*BlockLayout::FromWire(kTotal, workers, 4, {}));
    for (uint32_t rank = 0; rank < workers; ++rank) {
      members.push_back(
          std::make_unique<PeerWorker>(job, schema, rank, processes, model, seed + rank));
      PeerWorker& worker = *members.back();
      worker.carrier = std::make_unique<GossipCarrier>(
          worker.registration, *worker.client, *worker.peers, worker.stores.pieces,
          worker.stores.meetings, [] { return std::chrono::steady_clock::now(); });
      worker.contribution = worker.carrier->MakeVector();
    }
    for (const auto& worker : members) {
      REQUIRE(ReadWeights(*worker->carrier, 0, worker->weights).ok());
    }
  }

  // `change` is what the worker's steps subtract from its weights.
  void Contribute(uint32_t rank, uint64_t clock, const std::vector<float>& change) {
    PeerWorker& worker = *members[rank];
    std::copy(change.begin(), change.end(), worker.contribution.data());
    worker.carrier->Begin(clock);
    worker.carrier->Contribute({0, worker.carrier->layout().blocks()}, 1, nullptr,
                               worker.contribution.span(), worker.weights);
    CHECK(worker.carrier->Finish().ok());
  }
  void Await(uint32_t rank) {
    const auto answered = members[rank]->carrier->AwaitAll(Time::max());
    REQUIRE(answered.ok());
    CHECK(*answered);
    members[rank]->carrier->End();
  }
  void Clock(uint64_t clock, const std::function<std::vector<float>(uint32_t rank)>& changes) {
    for (uint32_t rank = 0; rank < members.size(); ++rank) Contribute(rank, clock, changes(rank));
    for (uint32_t rank = 0; rank < members.size(); ++rank) Await(rank);
  }
  // The sum of all weights, element by element.
  std::vector<double> Sum() const {
    std::vector<double> sum(kTotal);
    for (const auto& worker : members) {
      for (size_t i = 0; i < kTotal; ++i) sum[i] += worker->weights[i];
    }
    return sum;
  }

  const v1::TrainingJob job;
  const v1::ModelSchema schema = testing::SmallSchema({{"w", kTotal}});
  PeerProcesses processes;
  std::shared_ptr<FakeModel> model;
  std::vector<std::unique_ptr<PeerWorker>> members;
};

std::vector<float> Drawn(uint64_t clock, uint32_t rank) {
  RandomStream draws(clock, RandomPurpose::kGenerate, {rank});
  std::vector<float> values;
  while (values.size() < kTotal) values.push_back(static_cast<float>(draws.Uniform() - 0.5));
  return values;
}

const std::vector<float> kNone(kTotal, 0.0f);

// The worker's weights with all meetings so far.
std::vector<float> Last(PeerWorker& worker) {
  std::vector<float> last;
  for (uint32_t block = 0; block < worker.carrier->layout().blocks(); ++block) {
    const std::vector<float> none(worker.carrier->layout().Range(block).count);
    std::vector<float> weights(none.size());
    worker.stores.meetings.Subtract(block, none, weights);
    last.insert(last.end(), weights.begin(), weights.end());
  }
  return last;
}

TEST_CASE("in sync mode weights mix by the graph's matrix", "[gossip]") {
  for (const auto graph :
       {v1::GOSSIP_GRAPH_RING, v1::GOSSIP_GRAPH_EXPONENTIAL, v1::GOSSIP_GRAPH_RANDOM}) {
    for (const uint32_t workers : {1U, 2U, 5U}) {
      Crowd crowd(graph, v1::CONSISTENCY_MODE_SYNC, workers);
      std::vector<std::vector<double>> wanted(workers, std::vector<double>(kTotal));
      for (uint64_t clock = 0; clock < 4; ++clock) {
        crowd.Clock(clock, [&](uint32_t rank) { return Drawn(clock, rank); });
        const auto before = wanted;
        for (uint32_t rank = 0; rank < workers; ++rank) {
          for (size_t i = 0; i < kTotal; ++i) {
            wanted[rank][i] = 0;
            for (const Neighbour& each :
                 NeighboursOf(crowd.job.topology().gossip(), 5, clock, rank, workers)) {
              wanted[rank][i] += each.weight * (before[each.rank][i] - Drawn(clock, each.rank)[i]);
            }
            CHECK(std::abs(crowd.members[rank]->weights[i] - wanted[rank][i]) < 1e-6);
          }
        }
      }
    }
  }
}

TEST_CASE("in sync mode lost calls and answers change no bit", "[gossip]") {
  std::vector<std::vector<float>> found;
  for (const double lost : {0.0, 0.5}) {
    Crowd crowd(v1::GOSSIP_GRAPH_RING, v1::CONSISTENCY_MODE_SYNC, 5, lost);
    for (uint64_t clock = 0; clock < 6; ++clock) {
      crowd.Clock(clock, [&](uint32_t rank) { return Drawn(clock, rank); });
    }
    found.push_back(crowd.members[2]->weights);
  }
  CHECK(found[0] == found[1]);
}

TEST_CASE("a job may stop before multiples of mean_every, whose clocks wait for all", "[gossip]") {
  v1::RegisterWorkerReply registration;
  registration.mutable_job()->mutable_topology()->mutable_gossip()->set_mean_every(10);
  registration.mutable_length()->set_clocks(25);
  registration.set_cut_every(4);
  const MeanClocks clocks(registration);
  for (uint64_t clock = 0; clock < 25; ++clock) {
    const uint64_t made = clock + 1;
    CHECK(clocks.IsMean(clock, clock) == (made % 10 == 0 || made % 4 == 0 || made == 25));
    CHECK(clocks.MayStopBefore(clock) == (clock % 10 == 0));
  }
}

TEST_CASE("a neighbour's lost weights are replaced by a worker's own", "[gossip]") {
  Crowd crowd(v1::GOSSIP_GRAPH_RING, v1::CONSISTENCY_MODE_SYNC, 3);
  // Worker 1 is a next life, which begins at clock 5.
  crowd.members[1]->stores.pieces.KeepFrom(5);
  crowd.Contribute(0, 0, Drawn(0, 0));
  crowd.Contribute(2, 0, Drawn(0, 2));
  crowd.Await(0);
  for (size_t i = 0; i < kTotal; ++i) {
    const float wanted = -(2 * Drawn(0, 0)[i] + Drawn(0, 2)[i]) / 3;
    CHECK(std::abs(crowd.members[0]->weights[i] - wanted) < 1e-6);
  }
}

TEST_CASE("meetings keep the sum of all weights, whatever is lost", "[gossip]") {
  for (const double lost : {0.0, 0.6}) {
    Crowd crowd(v1::GOSSIP_GRAPH_RANDOM, v1::CONSISTENCY_MODE_ASYNC, 6, lost);
    crowd.Clock(0, [&](uint32_t rank) { return Drawn(0, rank); });
    // A meeting moves the other worker's weights, which it sees after its next step.
    for (uint64_t clock = 1; clock < 30; ++clock)
      crowd.Clock(clock, [](uint32_t) { return kNone; });
    std::vector<double> sum(kTotal), wanted(kTotal);
    for (const auto& worker : crowd.members) {
      const std::vector<float> last = Last(*worker);
      for (size_t i = 0; i < kTotal; ++i) sum[i] += last[i];
    }
    for (uint32_t rank = 0; rank < 6; ++rank) {
      for (size_t i = 0; i < kTotal; ++i) wanted[i] -= Drawn(0, rank)[i];
    }
    for (size_t i = 0; i < kTotal; ++i) CHECK(std::abs(sum[i] - wanted[i]) < 1e-5);
    // All weights are near their mean by now.
    for (size_t i = 0; i < kTotal; ++i) {
      CHECK(std::abs(crowd.members[3]->weights[i] - wanted[i] / 6) < 1e-3);
    }
  }
}

TEST_CASE("a worker that is lost costs the others no meeting", "[gossip]") {
  Crowd crowd(v1::GOSSIP_GRAPH_RANDOM, v1::CONSISTENCY_MODE_ASYNC, 3);
  v1::Peers peers = crowd.members[0]->registration.peers();
  peers.set_addresses(2, "");
  crowd.members[0]->peers->Move(peers);
  for (uint64_t clock = 0; clock < 10; ++clock) {
    crowd.Contribute(0, clock, kNone);
    crowd.Await(0);
  }
  // Nobody is there at all.
  peers.set_addresses(1, "");
  crowd.members[0]->peers->Move(peers);
  crowd.Contribute(0, 10, Drawn(1, 1));
  crowd.Await(0);
  for (size_t i = 0; i < kTotal; ++i) CHECK(crowd.members[0]->weights[i] == -Drawn(1, 1)[i]);
}

TEST_CASE("a worker that has not begun is not met", "[gossip]") {
  const v1::TrainingJob job = JobOf(v1::GOSSIP_GRAPH_RANDOM, v1::CONSISTENCY_MODE_ASYNC, 2);
  PeerProcesses processes(2);
  v1::ExchangeHeader header;
  header.set_job(1);
  absl::Status status;
  processes.stores[1]->meetings.Meet(header, {}, [&](auto reading) { status = reading.status(); });
  CHECK(absl::IsFailedPrecondition(status));
}

}  // namespace
}  // namespace leeway::gossip_carrier
