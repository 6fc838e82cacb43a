// Sums that travel along a ring or a tree of workers (exchange/carriers/relay_carrier.h).

#include "exchange/carriers/relay_carrier.h"

#include <chrono>
#include <cmath>
#include <memory>
#include <vector>

#include "tests/catch.h"
#include "tests/exchange/peer_rig.h"

namespace leeway::relay_carrier {
namespace {

using testing::FakeModel;
using testing::PeerProcesses;
using testing::PeerWorker;

constexpr uint64_t kBatch = 8;

v1::TrainingJob JobOf(v1::AllReduceAlgorithm algorithm, uint32_t workers) {
  v1::TrainingJob job;
  job.mutable_topology()->mutable_all_reduce()->set_algorithm(algorithm);
  job.mutable_workers()->set_count(workers);
  job.mutable_data()->set_batch_size(kBatch);
  job.mutable_exchange()->mutable_gradient();
  job.mutable_consistency()->set_mode(v1::CONSISTENCY_MODE_SYNC);
  return job;
}

std::vector<float> Drawn(uint64_t clock, uint32_t rank, size_t count) {
  RandomStream draws(clock, RandomPurpose::kGenerate, {rank});
  std::vector<float> values;
  while (values.size() < count) values.push_back(static_cast<float>(draws.Uniform() - 0.5));
  return values;
}

// Workers of one job, with blocks of 4 elements.
struct Ring {
  Ring(v1::AllReduceAlgorithm algorithm, uint32_t workers, v1::ModelSchema schema, double lost = 0,
       uint64_t seed = 1)
      : job(JobOf(algorithm, workers)), schema(std::move(schema)), processes(workers) {
    processes.lost = lost;
    model =
        std::make_shared<FakeModel>(*BlockLayout::FromWire(this->schema.total(), workers, 4, {}));
    for (uint32_t rank = 0; rank < workers; ++rank) Begin(rank, 0, seed + rank);
  }

  // Begins a life of the worker at this clock.
  void Begin(uint32_t rank, uint64_t clock, uint64_t seed = 1) {
    if (rank == members.size()) members.emplace_back();
    members[rank] = nullptr;
    members[rank] = std::make_unique<PeerWorker>(job, schema, rank, processes, model, seed);
    PeerWorker& worker = *members[rank];
    worker.carrier = std::make_unique<RelayCarrier>(
        worker.registration, *worker.client, *worker.peers, worker.stores.pieces,
        [] { return std::chrono::steady_clock::now(); });
    worker.contribution = worker.carrier->MakeVector();
    REQUIRE(ReadWeights(*worker.carrier, clock, worker.weights).ok());
  }

  void Contribute(uint32_t rank, uint64_t clock, uint64_t examples,
                  const ContributionRates& rates = nullptr) {
    PeerWorker& worker = *members[rank];
    const std::vector<float> drawn = Drawn(clock, rank, schema.total());
    std::copy(drawn.begin(), drawn.end(), worker.contribution.data());
    worker.carrier->Renew();
    worker.carrier->Begin(clock);
    worker.carrier->Contribute({0, worker.carrier->layout().blocks()}, examples, rates,
                               worker.contribution.span(), worker.weights);
    CHECK(worker.carrier->Finish().ok());
  }
  void Await(uint32_t rank) {
    AwaitAnswers(rank);
    // A program may look at what it has contributed.
    const auto given = members[rank]->contribution.span();
    const uint64_t clock = members[rank]->carrier->clock();
    CHECK(std::vector<float>(given.begin(), given.end()) == Drawn(clock, rank, schema.total()));
  }
  void AwaitAnswers(uint32_t rank) {
    const auto answered = members[rank]->carrier->AwaitAll(Time::max());
    REQUIRE(answered.ok());
    CHECK(*answered);
    CHECK(members[rank]->carrier->End().version == members[rank]->carrier->clock() + 1);
  }
  void Clock(uint64_t clock, const std::vector<uint64_t>& examples) {
    for (uint32_t rank = 0; rank < members.size(); ++rank) {
      Contribute(rank, clock, examples[rank]);
    }
    for (uint32_t rank = 0; rank < members.size(); ++rank) Await(rank);
  }

  const v1::TrainingJob job;
  const v1::ModelSchema schema;
  PeerProcesses processes;
  std::shared_ptr<FakeModel> model;
  std::vector<std::unique_ptr<PeerWorker>> members;
};

const auto kBoth = {v1::ALL_REDUCE_ALGORITHM_RING, v1::ALL_REDUCE_ALGORITHM_TREE};

TEST_CASE("all workers get the weights of the mean, weighted by examples", "[relay]") {
  const v1::ModelSchema schema = testing::SmallSchema({{"w", 38}});
  for (const auto algorithm : kBoth) {
    for (const uint32_t workers : {1U, 2U, 3U, 4U, 7U}) {
      Ring ring(algorithm, workers, schema);
      std::vector<uint64_t> examples;
      for (uint32_t rank = 0; rank < workers; ++rank) examples.push_back(rank == 1 ? 0 : rank + 3);
      std::vector<double> wanted(schema.total());
      for (uint64_t clock = 0; clock < 3; ++clock) {
        ring.Clock(clock, examples);
        double all = 0;
        for (const uint64_t each : examples) all += static_cast<double>(each);
        for (uint32_t rank = 0; rank < workers; ++rank) {
          const std::vector<float> drawn = Drawn(clock, rank, schema.total());
          for (size_t i = 0; i < wanted.size(); ++i) {
            wanted[i] -= static_cast<double>(examples[rank]) / all * drawn[i];
          }
        }
        for (const auto& worker : ring.members) CHECK(worker->weights == ring.members[0]->weights);
        CHECK(ring.model->weights() == ring.members[0]->weights);
        for (size_t i = 0; i < wanted.size(); ++i) {
          CHECK(std::abs(ring.members[0]->weights[i] - wanted[i]) < 1e-6);
        }
      }
    }
  }
}

TEST_CASE("lost calls and answers change no bit", "[relay]") {
  const v1::ModelSchema schema = testing::SmallSchema({{"w", 50}});
  for (const auto algorithm : kBoth) {
    std::vector<std::vector<float>> found;
    for (const double lost : {0.0, 0.5, 0.5}) {
      Ring ring(algorithm, 5, schema, lost, 7 * found.size());
      for (uint64_t clock = 0; clock < 5; ++clock) ring.Clock(clock, {8, 8, 3, 8, 8});
      found.push_back(ring.members[4]->weights);
    }
    CHECK(found[1] == found[0]);
    CHECK(found[2] == found[0]);
  }
}

TEST_CASE("a worker's next life does the clock again with the same bits", "[relay]") {
  const v1::ModelSchema schema = testing::SmallSchema({{"w", 50}});
  for (const auto algorithm : kBoth) {
    std::vector<std::vector<float>> found;
    for (const bool dies : {false, true}) {
      Ring ring(algorithm, 3, schema);
      ring.Clock(0, {8, 8, 8});
      for (uint32_t rank = 0; rank < 3; ++rank) ring.Contribute(rank, 1, 8);
      if (dies) {
        // The other two have all answers. The dead worker's own life had perhaps not.
        ring.Await(0);
        ring.Await(1);
        ring.Begin(2, 1);
        ring.Contribute(2, 1, 8);
      }
      ring.Await(2);
      if (!dies) {
        ring.Await(0);
        ring.Await(1);
      }
      ring.Clock(2, {8, 8, 8});
      for (const auto& worker : ring.members) CHECK(worker->weights == ring.members[0]->weights);
      found.push_back(ring.members[0]->weights);
    }
    CHECK(found[0] == found[1]);
  }
}

TEST_CASE("what a next life no longer publishes is read from the holder", "[relay]") {
  Ring ring(v1::ALL_REDUCE_ALGORITHM_RING, 2, testing::SmallSchema({{"w", 16}}));
  // Worker 1 has begun after clock 0, whose blocks are all updated.
  ring.Begin(1, 1);
  ring.model->set_weights(Drawn(3, 3, 16));
  ring.Contribute(0, 0, 8);
  ring.Await(0);
  CHECK(ring.members[0]->weights == Drawn(3, 3, 16));
}

ContributionRates Rates(std::vector<UpdatePart> parts) {
  return std::make_shared<const std::vector<UpdatePart>>(std::move(parts));
}

TEST_CASE("workers with different rates are named", "[relay]") {
  for (const auto algorithm : kBoth) {
    Ring ring(algorithm, 2, testing::SmallSchema({{"w", 8}}));
    ring.Contribute(0, 0, 8, Rates({{.end = 8, .rate = 0.5}}));
    ring.Contribute(1, 0, 8, Rates({{.end = 8, .rate = 0.25}}));
    const auto answered = ring.members[0]->carrier->AwaitAll(Time::max());
    CHECK_THAT(std::string(answered.status().message()),
               Catch::Contains("workers 0 and 1 have different learning rates at clock 0"));
  }
}

TEST_CASE("a worker without a batch sends the others' rate", "[relay]") {
  Ring ring(v1::ALL_REDUCE_ALGORITHM_RING, 3, testing::SmallSchema({{"w", 12}}));
  for (const uint32_t rank : {0U, 1U}) {
    ring.Contribute(rank, 0, 8, Rates({{.end = 5, .rate = 0.5}, {.end = 12, .rate = 0.5}}));
  }
  ring.Contribute(2, 0, 0);
  for (uint32_t rank = 0; rank < 3; ++rank) ring.AwaitAnswers(rank);
  for (const auto& request : ring.model->requests()) {
    if (!request.header.of_all()) continue;
    CHECK(request.header.rank() == request.header.block());
    REQUIRE(request.header.rates_size() > 0);
    for (const v1::RatePart& part : request.header.rates()) CHECK(part.factor() == 0.5);
  }
}

TEST_CASE("a worker without a batch says so if rates differ by tensor", "[relay]") {
  Ring ring(v1::ALL_REDUCE_ALGORITHM_RING, 2, testing::SmallSchema({{"w", 8}}));
  ring.Contribute(0, 0, 8, Rates({{.end = 2, .rate = 0.5}, {.end = 8, .rate = 1}}));
  ring.Contribute(1, 0, 0);
  const auto answered = ring.members[1]->carrier->AwaitAll(Time::max());
  CHECK_THAT(std::string(answered.status().message()),
             Catch::Contains("worker 1 has no batch at clock 0") &&
                 Catch::Contains("topology.algorithm: direct"));
}

TEST_CASE("averaged elements move as single contributions would move them", "[relay]") {
  const v1::ModelSchema schema = testing::SmallSchema({{"w", 5}, {"mean", 6, 0.1}});
  Ring ring(v1::ALL_REDUCE_ALGORITHM_RING, 3, schema);
  // One worker had no full batch left.
  ring.Clock(0, {kBatch, kBatch, 0});
  const std::vector<float> a = Drawn(0, 0, 11), b = Drawn(0, 1, 11);
  for (size_t i = 5; i < 11; ++i) {
    // The fake model subtracts the contribution, which is the mean of the two batches' values.
    CHECK(std::abs(ring.model->weights()[i] + (a[i] + b[i]) / 2) < 1e-6);
  }
}

TEST_CASE("an abandoned exchange ends although the others never answer", "[relay]") {
  Ring ring(v1::ALL_REDUCE_ALGORITHM_RING, 3, testing::SmallSchema({{"w", 12}}));
  ring.Contribute(0, 0, 8);
  const auto answered = ring.members[0]->carrier->AwaitAll(Time{});
  REQUIRE(answered.ok());
  CHECK_FALSE(*answered);
  CHECK_FALSE(ring.members[0]->carrier->Abandon());
}

}  // namespace
}  // namespace leeway::relay_carrier
