// Learning rates and decays by kind of tensor on shards: the same for any number of servers, and as
// the rule says for each element.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <google/protobuf/text_format.h>

#include "common/philox.h"
#include "tests/server/shard/shard_rig.h"

namespace leeway::shard_factors {
namespace {

using testing::KeptCuts;
using testing::Reply;

constexpr uint64_t kClocks = 4;
constexpr uint32_t kWorkers = 3;

struct Tensor {
  v1::TensorKind kind;
  uint64_t elements;
};
// No tensor ends at the end of a block.
constexpr Tensor kTensors[] = {{v1::TENSOR_KIND_EMBEDDING, 17}, {v1::TENSOR_KIND_WEIGHT, 100},
                               {v1::TENSOR_KIND_BIAS, 5},       {v1::TENSOR_KIND_NORM, 30},
                               {v1::TENSOR_KIND_NORM, 30},      {v1::TENSOR_KIND_WEIGHT, 61},
                               {v1::TENSOR_KIND_BIAS, 7}};
constexpr uint64_t kAll = 250;

// Factors of single tensors; empty: no tensor has factors.
using TensorFactorList = std::vector<v1::Factors>;

Shard::Options OptionsOf(const std::string& update, uint32_t servers, const TensorFactorList& own) {
  Shard::Options options = testing::SgdOptions(v1::CONSISTENCY_MODE_SYNC, kWorkers);
  REQUIRE(google::protobuf::TextFormat::ParseFromString(update, options.job.mutable_update()));
  options.job.mutable_servers()->set_count(servers);
  options.schema.Clear();
  for (const Tensor& each : kTensors) {
    v1::TensorSpec& tensor = *options.schema.add_tensors();
    tensor.set_kind(each.kind);
    if (!own.empty()) *tensor.mutable_factors() = own[options.schema.tensors_size() - 1];
    tensor.add_shape(each.elements);
    tensor.set_offset(options.schema.total());
    options.schema.set_total(options.schema.total() + each.elements);
  }
  options.schema.set_trained(kAll);
  options.block_elements = 32;
  return options;
}

std::vector<float> Draw(uint64_t key) {
  RandomStream stream(3, RandomPurpose::kInitialize, {key});
  std::vector<float> values(kAll);
  for (float& value : values) value = static_cast<float>(stream.Normal());
  return values;
}

v1::ExchangeHeader Header(uint32_t rank, uint64_t clock, uint32_t block) {
  v1::ExchangeHeader header;
  header.set_rank(rank);
  header.set_incarnation(1);
  header.set_clock(clock);
  header.set_block(block);
  header.set_examples(10);
  return header;
}

// Returns all weights after some clocks of workers whose gradients are drawn.
std::vector<float> Train(const std::string& update, uint32_t servers,
                         const TensorFactorList& own = {}) {
  std::vector<float> after(kAll);
  for (uint32_t server = 0; server < servers; ++server) {
    KeptCuts cuts;
    Shard::Options options = OptionsOf(update, servers, own);
    options.server = server;
    const auto shard = Shard::Make(options, &cuts);
    REQUIRE(shard.ok());
    const BlockStore& store = (*shard)->store();
    for (uint32_t block = server; block < store.layout().blocks(); block += servers) {
      const ElementRange range = store.Range(block);
      const auto part = [&](const std::vector<float>& values) {
        return FloatPayload::Of(std::span(values).subspan(range.offset, range.count));
      };
      const std::vector<float> first = Draw(0);
      Reply made;
      (*shard)->Initialize(Header(0, 0, block), part(first), made.Done());
      for (uint64_t clock = 0; clock < kClocks; ++clock) {
        std::vector<std::vector<float>> gradients;
        std::vector<Reply> replies(kWorkers);
        for (uint32_t rank = 0; rank < kWorkers; ++rank) {
          gradients.push_back(Draw(1 + clock * kWorkers + rank));
          (*shard)->Contribute(Header(rank, clock, block), part(gradients.back()), true, Time(),
                               replies[rank].Done());
        }
        for (const Reply& reply : replies) REQUIRE(reply.status().ok());
      }
      const SharedFloats weights = store.CurrentWeights(block);
      std::copy_n(weights.span().begin(), range.count, after.begin() + range.offset);
    }
  }
  return after;
}

constexpr char kFactors[] =
    " factors { biases { weight_decay: 0 } norms { weight_decay: 0 learning_rate: 2 } "
    "embeddings { learning_rate: 0.25 } }";

TEST_CASE("with factors any number of servers computes the same bits") {
  for (const std::string rule :
       {"sgd { momentum: 0.9 weight_decay: 0.1 } learning_rate: 0.1", "lion {} learning_rate: 0.1",
        "adamw { weight_decay: 0.5 } learning_rate: 0.1 scaling: RATE_SCALING_SQUARE_ROOT"}) {
    const std::vector<float> one = Train(rule + kFactors, 1);
    for (const uint32_t servers : {2, 3, 8}) {
      CAPTURE(rule, servers);
      CHECK(Train(rule + kFactors, servers) == one);
    }
    CHECK(Train(rule + " factors { norms {} }", 2) == Train(rule, 2));
  }
}

TEST_CASE("with factors each tensor is as if the job's rate and decay were those of its kind") {
  const auto rule = [](double rate, double decay) {
    return "adamw { weight_decay: " + std::to_string(decay) +
           " } learning_rate: " + std::to_string(rate);
  };
  const std::vector<float> mixed = Train(rule(0.125, 0.5) + kFactors, 3);
  const std::map<v1::TensorKind, std::vector<float>> alone = {
      {v1::TENSOR_KIND_WEIGHT, Train(rule(0.125, 0.5), 2)},
      {v1::TENSOR_KIND_BIAS, Train(rule(0.125, 0), 2)},
      {v1::TENSOR_KIND_NORM, Train(rule(0.25, 0), 2)},
      {v1::TENSOR_KIND_EMBEDDING, Train(rule(0.03125, 0.5), 2)}};
  uint64_t begin = 0;
  for (const Tensor& tensor : kTensors) {
    const std::vector<float>& expected = alone.at(tensor.kind);
    CAPTURE(begin, tensor.kind);
    CHECK(std::equal(mixed.begin() + begin, mixed.begin() + begin + tensor.elements,
                     expected.begin() + begin));
    begin += tensor.elements;
  }
}

TEST_CASE("a tensor's own factors are as if the job's rate and decay were so for it") {
  const std::string decay = "adamw { weight_decay: 0.5 } learning_rate: 0.125";
  // By tensor of kTensors.
  TensorFactorList own(std::size(kTensors));
  own[1].set_weight_decay(0);
  own[4].set_learning_rate(0.25);
  const std::vector<float> mixed = Train(decay, 3, own);
  CHECK(Train(decay, 1, own) == mixed);
  const std::vector<float> plain = Train(decay, 2);
  const std::vector<float> kept = Train("adamw { weight_decay: 0 } learning_rate: 0.125", 2);
  const std::vector<float> slow = Train("adamw { weight_decay: 0.5 } learning_rate: 0.03125", 2);
  uint64_t begin = 0;
  for (size_t i = 0; i < std::size(kTensors); ++i) {
    const std::vector<float>& expected = i == 1 ? kept : i == 4 ? slow : plain;
    CAPTURE(i);
    CHECK(std::equal(mixed.begin() + begin, mixed.begin() + begin + kTensors[i].elements,
                     expected.begin() + begin));
    begin += kTensors[i].elements;
  }
}

TEST_CASE("a shard scales the rate by the number of workers") {
  const std::string sgd = "sgd {} learning_rate: ";
  const std::vector<float> three = Train(sgd + "0.75", 2);
  CHECK(Train(sgd + "0.25 scaling: RATE_SCALING_LINEAR", 2) == three);
  CHECK_FALSE(Train(sgd + "0.25", 2) == three);
}

}  // namespace
}  // namespace leeway::shard_factors
