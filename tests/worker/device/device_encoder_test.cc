// The device encodes the same bytes, and keeps the same residual, as the client would.
#include "worker/training/device_encoder.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "client/calls/residuals.h"
#include "tests/worker/device/fake_device.h"
#include "tests/worker/device/seeds.h"
#include "tests/worker/model/support.h"

namespace leeway::testing::device_encoder {
namespace {

constexpr uint64_t kTotal = 2777;

// Blocks of whole groups, where neighbouring blocks are encoded together, or blocks whose last
// group is short.
BlockLayout Layout(uint64_t block_elements = 600) {
  return *BlockLayout::FromWire(kTotal, 1, block_elements);
}

// A plan of three tensors; the middle one's blocks travel uncompressed.
CodecPlan PlanOf(v1::Codec::TypeCase type, const BlockLayout& layout = Layout()) {
  v1::ModelSchema schema;
  schema.set_total(kTotal);
  schema.set_trained(kTotal);
  constexpr uint64_t kSizes[] = {1000, 900, kTotal - 1900};
  uint64_t offset = 0;
  for (size_t i = 0; i < 3; ++i) {
    v1::TensorSpec& tensor = *schema.add_tensors();
    tensor.set_name("layer" + std::to_string(i) + "/weight");
    tensor.add_shape(kSizes[i]);
    tensor.set_offset(offset);
    offset += kSizes[i];
  }
  v1::Compression compression;
  compression.mutable_weights()->mutable_none();
  v1::Codec& codec = *compression.mutable_contributions();
  if (type == v1::Codec::kBf16) codec.mutable_bf16();
  if (type == v1::Codec::kFp16) codec.mutable_fp16();
  if (type == v1::Codec::kInt8) codec.mutable_int8();
  if (type == v1::Codec::kSign) codec.mutable_sign();
  if (type == v1::Codec::kTopK) codec.mutable_top_k()->set_share(0.1);
  v1::LayerCompression& layer = *compression.add_layers();
  layer.add_names("layer1");
  layer.mutable_contributions()->mutable_none();
  auto plan = CodecPlan::Make(compression, schema, layout);
  CAPTURE(plan.status());
  REQUIRE(plan.ok());
  return *std::move(plan);
}

// Does the same on the device and in the client.
class Both {
 public:
  Both(uint64_t seed, v1::Codec::TypeCase type, uint64_t block_elements)
      : layout_(Layout(block_elements)), plan_(PlanOf(type, layout_)), client_(layout_) {
    device_ = *FakeDevice::Make({.seed = seed, .memory_bytes = 1 << 20});
    encoder_ = *DeviceEncoder::Make(*device_, layout_, plan_);
    contribution_ = *FlatVector::Twins(*device_, FloatBuffer(kTotal));
  }

  // `attempt` selects the values.
  void Encode(uint64_t clock, BlockRange blocks, uint64_t attempt = 0) {
    const std::vector<float> values = RandomValues(kTotal, 2 * clock + attempt + 1);
    REQUIRE(contribution_.Set(values).ok());
    encoder_->Start(clock, blocks, contribution_.device().data(), contribution_.host());
    REQUIRE(device_->Await(device_->Record(Stream::kDown)).ok());
    for (uint32_t block = blocks.first; block < blocks.first + blocks.count; ++block) {
      const Codec& codec = plan_.contribution(block);
      const ElementRange range = layout_.Range(block);
      const auto own = std::span(values).subspan(range.offset, range.count);
      CAPTURE(clock, block);
      if (codec.encoding() == v1::ENCODING_RAW) {
        const auto down = contribution_.host().subspan(range.offset, range.count);
        REQUIRE(std::memcmp(down.data(), own.data(), own.size_bytes()) == 0);
        continue;
      }
      const EncodedContribution expected = client_.Encode(codec, block, clock, own);
      const EncodedContribution made = encoder_->Encode(codec, block, clock, {});
      REQUIRE(made.bytes.size() == expected.bytes.size());
      REQUIRE(std::memcmp(made.bytes.data(), expected.bytes.data(), made.bytes.size()) == 0);
    }
  }

  void Undo(uint64_t clock) {
    encoder_->Undo(clock);
    client_.Undo(clock);
  }

  void Read(uint64_t clock) {
    FloatBuffer made(kTotal), expected(kTotal);
    REQUIRE(encoder_->Read(clock, made.span()).ok());
    REQUIRE(client_.Read(clock, expected.span()).ok());
    CAPTURE(clock);
    REQUIRE(std::memcmp(made.data(), expected.data(), expected.span().size_bytes()) == 0);
  }

  void Set(uint64_t seed) {
    const std::vector<float> values = RandomValues(kTotal, seed);
    REQUIRE(encoder_->Set(values).ok());
    REQUIRE(client_.Set(values).ok());
  }

  uint32_t blocks() const { return layout_.blocks(); }
  absl::Status status() const { return device_->status(); }

 private:
  const BlockLayout layout_;
  const CodecPlan plan_;
  Residuals client_;
  std::unique_ptr<FakeDevice> device_;
  std::unique_ptr<DeviceEncoder> encoder_;
  FlatVector contribution_;
};

TEST_CASE("A device's encodings and residuals are the client's, whatever becomes of the clocks",
          "[seeds]") {
  const auto type =
      GENERATE(v1::Codec::kBf16, v1::Codec::kFp16, v1::Codec::kInt8, v1::Codec::kSign);
  for (uint64_t seed = 0; seed < Seeds(25); ++seed) {
    CAPTURE(static_cast<int>(type), seed);
    constexpr uint64_t kBlocks[] = {256, 300, 600};
    Both both(seed, type, kBlocks[seed % 3]);
    RandomStream draws(seed, RandomPurpose::kGenerate);
    const auto all = BlockRange{0, both.blocks()};
    uint64_t clock = 0;
    for (int round = 0; round < 12; ++round) {
      const auto first = static_cast<uint32_t>(draws.Below(both.blocks()));
      const auto count = static_cast<uint32_t>(draws.Below(both.blocks() - first) + 1);
      switch (draws.Below(5)) {
        case 0:
          both.Encode(clock++, all);
          break;
        case 1:  // Broken off, and done again, with the same values or with others.
          both.Encode(clock, {first, count});
          both.Encode(clock++, all, draws.Below(2));
          break;
        case 2:  // Dropped.
          both.Encode(clock, {first, count});
          both.Undo(clock);
          ++clock;
          break;
        case 3:
          both.Read(clock - draws.Below(std::min<uint64_t>(clock, 1) + 1));
          break;
        default:
          if (round < 2) both.Set(seed + 1);
      }
    }
    both.Read(clock);
    REQUIRE(both.status().ok());
  }
}

TEST_CASE("A device takes encodings that have groups, of what the host need not touch") {
  v1::TrainingJob job;
  const BlockLayout layout = Layout();
  const CodecPlan int8 = PlanOf(v1::Codec::kInt8), top_k = PlanOf(v1::Codec::kTopK);
  v1::Exchange& exchange = *job.mutable_exchange();
  exchange.mutable_gradient();
  CHECK(EncodesOnDevice(job, 1, layout, int8));
  CHECK(EncodesOnDevice(job, 1, layout, PlanOf(v1::Codec::kSign)));
  CHECK_FALSE(EncodesOnDevice(job, 1, layout, top_k));
  CHECK_FALSE(EncodesOnDevice(job, 2, layout, int8));
  exchange.set_on_bad_gradient(v1::BAD_GRADIENT_SKIP);
  CHECK_FALSE(EncodesOnDevice(job, 1, layout, int8));
  exchange.set_on_bad_gradient(v1::BAD_GRADIENT_REJECT);
  job.mutable_workers()->set_precision(v1::PRECISION_FP16);
  CHECK_FALSE(EncodesOnDevice(job, 1, layout, int8));
  // Local steps have already checked their gradients.
  exchange.mutable_delta();
  CHECK(EncodesOnDevice(job, 5, layout, int8));
  job.mutable_workers()->set_per_host(v1::PER_HOST_COMBINE);
  CHECK_FALSE(EncodesOnDevice(job, 5, layout, int8));
}

TEST_CASE("A device without room for the residual says so") {
  const auto device = *FakeDevice::Make({.memory_bytes = kTotal * sizeof(float) * 3 / 2});
  const BlockLayout layout = Layout();
  const auto made = DeviceEncoder::Make(*device, layout, PlanOf(v1::Codec::kInt8));
  CHECK(absl::IsResourceExhausted(made.status()));
}

}  // namespace
}  // namespace leeway::testing::device_encoder
