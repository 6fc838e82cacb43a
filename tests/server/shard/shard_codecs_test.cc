// A shard of a job that compresses: encoded contributions, and encoded answers.
#include <cmath>
#include <optional>
#include <vector>

#include "common/codec/codec.h"
#include "common/codec/encoded.h"
#include "server/shard/shard.h"
#include "tests/catch.h"

namespace leeway::shard_codecs {
namespace {

constexpr uint64_t kTotal = 300;

class NoCuts : public CutListener {
 public:
  void OnHeld(uint64_t cut, HeldBlock block) override { held.push_back(std::move(block)); }
  std::vector<HeldBlock> held;
};

v1::Codec Int8() {
  v1::Codec codec;
  codec.mutable_int8();
  return codec;
}
v1::Codec TopK(double share) {
  v1::Codec codec;
  codec.mutable_top_k()->set_share(share);
  return codec;
}

// One block, one worker, plain SGD of learning rate 1.
Shard::Options Options(const v1::Codec& weights) {
  Shard::Options options;
  options.job.mutable_exchange()->mutable_gradient();
  options.job.mutable_consistency()->set_mode(v1::CONSISTENCY_MODE_SYNC);
  options.job.mutable_update()->mutable_sgd();
  options.job.mutable_update()->set_learning_rate(1);
  options.job.mutable_data()->set_batch_size(10);
  options.job.mutable_workers()->set_count(1);
  options.job.mutable_servers()->set_count(1);
  options.job.mutable_compression()->mutable_contributions()->mutable_none();
  *options.job.mutable_compression()->mutable_weights() = weights;
  options.schema.set_total(kTotal);
  options.schema.set_trained(kTotal);
  v1::TensorSpec& tensor = *options.schema.add_tensors();
  tensor.set_name("dense/weight");
  tensor.add_shape(kTotal);
  options.length.set_steps_per_clock(1);
  options.length.set_clocks(10);
  options.length.set_steps_per_epoch(10);
  options.block_elements = kTotal;
  return options;
}

class World {
 public:
  explicit World(const Shard::Options& options) : shard(*Shard::Make(options, &cuts)) {}

  v1::ExchangeHeader Header(uint64_t clock) {
    v1::ExchangeHeader header;
    header.set_incarnation(1);
    header.set_clock(clock);
    header.set_examples(10);
    header.set_reply_encoding(asks);
    if (have.has_value()) header.set_have_version(*have);
    return header;
  }
  Shard::Done Take() {
    return [this](absl::StatusOr<BlockReading> reading) { answer = std::move(reading); };
  }
  void Initialize(const std::vector<float>& values) {
    shard->Initialize(Header(0), FloatPayload::Of(values), Take());
    REQUIRE(answer.ok());
  }
  void PushPull(uint64_t clock, const std::vector<float>& values) {
    shard->Contribute(Header(clock), FloatPayload::Of(values), true, Time{}, Take());
    REQUIRE(answer.ok());
  }
  void Pull(uint64_t clock) {
    shard->Read(Header(clock), ReadKind::kAtClock, Time{}, Take());
    REQUIRE(answer.ok());
  }
  std::vector<float> Latest() {
    v1::ExchangeHeader header;
    shard->Read(header, ReadKind::kLatest, Time{}, Take());
    REQUIRE(answer.ok());
    return {answer->values.span().begin(), answer->values.span().end()};
  }
  // Applies the answer as a worker that has `weights` does.
  void Apply(std::vector<float>& weights) {
    if (answer->encoded == nullptr) {
      REQUIRE(answer->header.encoding() == v1::ENCODING_RAW);
      weights.assign(answer->values.span().begin(), answer->values.span().end());
      return;
    }
    const auto values = EncodedValues::Open(
        answer->header.encoding(), nullptr,
        {{reinterpret_cast<const uint8_t*>(answer->encoded->data()), answer->encoded->size()}},
        weights.size());
    REQUIRE(values.ok());
    if (answer->header.has_since_version()) {
      (*values)->AddTo(weights);
    } else {
      (*values)->Read(0, weights);
    }
  }

  NoCuts cuts;
  std::unique_ptr<Shard> shard;
  v1::Encoding asks = v1::ENCODING_RAW;
  std::optional<uint64_t> have;
  absl::StatusOr<BlockReading> answer = absl::UnknownError("none yet");
};

std::vector<float> Wave(float scale) {
  std::vector<float> values(kTotal);
  for (size_t i = 0; i < kTotal; ++i) values[i] = scale * std::sin(static_cast<float>(i + 1));
  return values;
}

TEST_CASE("a dense codec answers each version in it, once encoded, to who asks") {
  World world(Options(Int8()));
  world.Initialize(Wave(1));
  world.PushPull(0, Wave(0.5f));
  CHECK(world.answer->encoded == nullptr);
  const std::vector<float> exact = world.Latest();
  world.asks = v1::ENCODING_INT8;
  world.Pull(1);
  const auto first = world.answer->encoded;
  REQUIRE(first != nullptr);
  CHECK(world.answer->header.encoding() == v1::ENCODING_INT8);
  CHECK_FALSE(world.answer->header.has_since_version());
  std::vector<float> read(kTotal);
  world.Apply(read);
  for (size_t i = 0; i < kTotal; ++i) CHECK(std::abs(read[i] - exact[i]) <= 0.5f / 127);
  world.Pull(1);
  CHECK(world.answer->encoded == first);
  // An answer in another codec than the job's has the values themselves.
  world.asks = v1::ENCODING_BF16;
  world.Pull(1);
  CHECK(world.answer->encoded == nullptr);
}

TEST_CASE("changes bring a worker from version to version, and repeated they are the same") {
  World world(Options(TopK(0.1)));
  world.Initialize(Wave(1));
  world.asks = v1::ENCODING_TOP_K;
  std::vector<float> weights(kTotal), late(kTotal);
  world.Pull(0);
  CHECK(world.answer->encoded == nullptr);
  world.Apply(weights);
  CHECK(weights == Wave(1));
  for (uint64_t clock = 0; clock < 8; ++clock) {
    world.have = clock;
    world.PushPull(clock, Wave(clock == 0 ? 0.5f : 0));
    REQUIRE(world.answer->encoded != nullptr);
    CHECK(world.answer->header.since_version() == clock);
    const auto bytes = world.answer->encoded;
    world.Apply(weights);
    // The reply was lost: the same request again.
    world.PushPull(clock, Wave(0));
    CHECK(world.answer->duplicate);
    CHECK(world.answer->encoded == bytes);
    // A worker that has no version gets what the others have, bit for bit.
    world.have = std::nullopt;
    world.Pull(clock + 1);
    CHECK(world.answer->encoded == nullptr);
    world.Apply(late);
    CHECK(late == weights);
    // A worker that has the version gets nothing.
    world.have = clock + 1;
    world.Pull(clock + 1);
    CHECK(world.answer->header.unchanged());
  }
  CHECK(weights != world.Latest());
}

TEST_CASE("what changes have not brought yet follows, until nothing is missing") {
  World world(Options(TopK(0.25)));
  world.Initialize(std::vector<float>(kTotal));
  world.asks = v1::ENCODING_TOP_K;
  std::vector<float> weights(kTotal);
  world.have = 0;
  // Values that bf16 represents exactly.
  std::vector<float> gradient(kTotal);
  for (size_t i = 0; i < kTotal; ++i) gradient[i] = static_cast<float>(i % 64);
  for (uint64_t clock = 0; clock < 5; ++clock) {
    world.have = clock;
    world.PushPull(clock, clock == 0 ? gradient : std::vector<float>(kTotal));
    world.Apply(weights);
  }
  CHECK(weights == world.Latest());
}

TEST_CASE("a worker that comes back finds the version before as the others had it") {
  Shard::Options options = Options(TopK(0.1));
  options.job.mutable_workers()->set_count(2);
  World world(options);
  world.Initialize(Wave(1));
  world.asks = v1::ENCODING_TOP_K;
  // A shard keeps the payload, which lives as long as its owner, until the clock is complete.
  const std::vector<float> gradient = Wave(0.5f);
  const auto push = [&](uint32_t rank, uint64_t clock) {
    v1::ExchangeHeader header = world.Header(clock);
    header.set_rank(rank);
    world.shard->Contribute(header, FloatPayload::Of(gradient), true, Time{}, world.Take());
  };
  std::vector<float> weights(kTotal), again(kTotal);
  for (uint64_t clock = 0; clock < 3; ++clock) {
    world.have = clock;
    push(0, clock);
    push(1, clock);
    if (clock == 0) world.have = std::nullopt;
    if (clock == 0) world.Pull(1);
    if (clock < 2) world.Apply(weights);
  }
  // The block is at version 3. Rank 1 has died in clock 2 and begins it again.
  world.have = std::nullopt;
  world.Pull(2);
  CHECK(world.answer->header.version() == 2);
  world.Apply(again);
  CHECK(again == weights);
}

TEST_CASE("a shard goes on from a checkpoint with what its workers had") {
  World world(Options(TopK(0.1)));
  world.Initialize(Wave(1));
  world.asks = v1::ENCODING_TOP_K;
  std::vector<float> weights(kTotal), resumed_weights(kTotal);
  world.have = 0;
  world.Pull(0);
  for (uint64_t clock = 0; clock < 3; ++clock) {
    world.have = clock;
    world.PushPull(clock, Wave(0.5f));
  }
  const auto held = world.shard->Hold(3);
  REQUIRE(held.ok());
  REQUIRE(held->at(0).values.shadow);
  World resumed(Options(TopK(0.1)));
  resumed.shard->Load(0, held->at(0).values, held->at(0).progress);
  resumed.asks = v1::ENCODING_TOP_K;
  resumed.Pull(3);
  resumed.Apply(resumed_weights);
  world.have = std::nullopt;
  world.Pull(3);
  world.Apply(weights);
  CHECK(resumed_weights == weights);
  for (World* one : {&world, &resumed}) {
    one->have = 3;
    one->PushPull(3, Wave(0.25f));
  }
  REQUIRE(world.answer->encoded != nullptr);
  CHECK(*resumed.answer->encoded == *world.answer->encoded);
}

TEST_CASE("a shard taken over answers the version before in the bits of the owner before") {
  for (const v1::Codec& codec : {Int8(), TopK(0.1)}) {
    World first(Options(codec)), second(Options(codec));
    for (World* one : {&first, &second}) one->asks = (*MakeCodec(codec))->encoding();
    first.Initialize(Wave(1));
    for (uint64_t clock = 0; clock < 3; ++clock) first.PushPull(clock, Wave(0.3f));
    // It sends a replica the previous version as readers of changes had it.
    first.Pull(2);
    const SharedFloats previous = first.answer->encoded == nullptr
                                      ? first.answer->values
                                      : first.shard->store().PreviousWeights(0);
    const auto held = first.shard->Hold(3);
    REQUIRE(held.ok());
    second.shard->Load(0, held->at(0).values, held->at(0).progress, previous);
    for (const uint64_t clock : {2, 3}) {
      std::vector<float> before(kTotal), after(kTotal);
      first.Pull(clock);
      first.Apply(before);
      second.Pull(clock);
      CHECK(second.answer->header.version() == clock);
      CHECK((second.answer->encoded == nullptr) == (first.answer->encoded == nullptr));
      second.Apply(after);
      CHECK(after == before);
    }
  }
}

TEST_CASE("contributions count as what they decode to, and hostile ones change nothing") {
  World world(Options(Int8()));
  world.Initialize(Wave(1));
  const auto codec = *MakeCodec(Int8());
  std::vector<uint8_t> bytes(codec->MaxBytes(kTotal));
  bytes.resize(codec->Encode(Wave(0.5f), {}, bytes));
  std::vector<float> decoded(kTotal);
  REQUIRE(Decode(v1::ENCODING_INT8, bytes, decoded).ok());
  const auto push = [&](v1::Encoding encoding, std::vector<uint8_t> payload) {
    v1::ExchangeHeader header = world.Header(0);
    header.set_encoding(encoding);
    const auto owner = std::make_shared<std::vector<uint8_t>>(std::move(payload));
    world.shard->Contribute(header, FloatPayload(owner, {*owner}), true, Time{}, world.Take());
  };
  const std::vector<uint8_t> cut(bytes.begin(), bytes.end() - 1);
  for (const auto encoding : {v1::ENCODING_RAW, v1::ENCODING_BF16, v1::ENCODING_FP16,
                              v1::ENCODING_INT8, v1::ENCODING_TOP_K, v1::ENCODING_SIGN}) {
    for (const auto& payload : {cut, std::vector<uint8_t>(), std::vector<uint8_t>(600, 0xff)}) {
      push(encoding, payload);
      CHECK(absl::IsInvalidArgument(world.answer.status()));
    }
  }
  push(static_cast<v1::Encoding>(99), bytes);
  CHECK(absl::IsInvalidArgument(world.answer.status()));
  CHECK(world.shard->updates_applied() == 0);
  push(v1::ENCODING_INT8, bytes);
  REQUIRE(world.answer.ok());
  const std::vector<float> weights = world.Latest(), initial = Wave(1);
  for (size_t i = 0; i < kTotal; ++i) CHECK(weights[i] == initial[i] - decoded[i]);
}

}  // namespace
}  // namespace leeway::shard_codecs
