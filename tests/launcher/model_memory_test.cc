#include "launcher/plan/model_memory.h"

#include "tests/catch.h"

namespace leeway::model_memory {
namespace {

uint64_t Vectors(const v1::Exchange& exchange, uint64_t steps, bool keeps_residual) {
  v1::TrainingJob job;
  *job.mutable_exchange() = exchange;
  const auto vectors = VectorsOfWorker(job, steps, keeps_residual);
  REQUIRE(vectors.status() == absl::OkStatus());
  return *vectors;
}

std::unique_ptr<const Codec> CodecOf(void (*choose)(v1::Codec&)) {
  v1::Codec config;
  choose(config);
  auto codec = MakeCodec(config);
  REQUIRE(codec.ok());
  return *std::move(codec);
}

TEST_CASE("a gradient worker has weights and contribution, and what else its job keeps") {
  v1::Exchange exchange;
  exchange.mutable_gradient();
  CHECK(Vectors(exchange, 1, false) == 2);
  // Batches are accumulated in another vector.
  CHECK(Vectors(exchange, 4, false) == 3);
  // The residual after the latest contribution, and the one before it.
  CHECK(Vectors(exchange, 1, true) == 4);
}

TEST_CASE("a worker with steps of its own keeps its state twice, as it does the residual") {
  v1::Exchange exchange;
  v1::DeltaExchange& delta = *exchange.mutable_delta();
  delta.mutable_optimizer()->mutable_adam()->set_beta1(0.9);
  // Start, local weights and contribution; two slots, twice.
  CHECK(Vectors(exchange, 8, false) == 3 + 2 * 2);
  CHECK(Vectors(exchange, 8, true) == 3 + 2 * 2 + 2);
  delta.set_spread(true);
  // Gradient, contribution and what has left; local weights, answers and slots, each twice.
  CHECK(Vectors(exchange, 8, false) == 3 + 2 * (2 + 2));

  v1::ElasticExchange& elastic = *exchange.mutable_elastic();
  elastic.mutable_optimizer()->mutable_sgd();
  // Centre and gradient; local weights, twice.
  CHECK(Vectors(exchange, 8, false) == 2 + 2);
  elastic.mutable_optimizer()->mutable_sgd()->set_momentum(0.9);
  CHECK(Vectors(exchange, 8, false) == 2 + 2 * 2);
  elastic.set_spread(true);
  CHECK(Vectors(exchange, 8, false) == 3 + 2 * 2);
}

TEST_CASE("workers that exchange with each other keep what the others may ask for") {
  v1::TrainingJob job;
  CHECK(VectorsOfPeers(job) == 0);
  v1::AllReduce& all_reduce = *job.mutable_topology()->mutable_all_reduce();
  CHECK(VectorsOfPeers(job) == 0);
  // Sums and new weights, of two clocks, and the means.
  all_reduce.set_algorithm(v1::ALL_REDUCE_ALGORITHM_RING);
  CHECK(VectorsOfPeers(job) == 2 * 2 + 1);
  job.mutable_topology()->mutable_gossip();
  v1::DeltaExchange& delta = *job.mutable_exchange()->mutable_delta();
  delta.mutable_optimizer()->mutable_sgd()->set_momentum(0.9);
  // The weights of two clocks; mean, change, and what was fetched.
  CHECK(VectorsOfPeers(job) == 2 + 3);
  // Contribution and gradient; the worker's own weights and momentum, each twice.
  CHECK(VectorsOfWorker(job, 8, false).value() == 2 + 2 * 2);
  job.mutable_consistency()->set_mode(v1::CONSISTENCY_MODE_ASYNC);
  CHECK(VectorsOfPeers(job) == 2 + 3);
  // As with servers: a new life begins at the mean.
  CHECK(VectorsOfWorker(job, 8, false).value() == 3 + 2);
}

TEST_CASE("compressed answers cost a server what docs/algorithms.md says") {
  const auto none = CodecOf([](v1::Codec& codec) { codec.mutable_none(); });
  const auto half = CodecOf([](v1::Codec& codec) { codec.mutable_bf16(); });
  const auto sign = CodecOf([](v1::Codec& codec) { codec.mutable_sign(); });
  CHECK(ReplyBytes(*none, 1024) == 0);
  CHECK(ReplyBytes(*half, 1024) == 2 * 2048);
  CHECK(ReplyBytes(*sign, 1024) == 2 * 4096);
  CHECK(ReplicaReplyBytes(*half, 1024) == 0);
  CHECK(ReplicaReplyBytes(*sign, 1024) == 4096);
}

}  // namespace
}  // namespace leeway::model_memory
