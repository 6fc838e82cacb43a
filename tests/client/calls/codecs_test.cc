// A client whose payloads are compressed.
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "client/calls/parameter_client.h"
#include "client/calls/residuals.h"
#include "common/codec/encoded.h"
#include "tests/catch.h"
#include "tests/client/fake_servers.h"
#include "tests/client/fault_transport.h"

namespace leeway::codecs {
namespace {

using testing::FakeModel;

// Three blocks of 256 elements, the last one shorter, on two servers.
constexpr uint64_t kTotal = 600;

BlockLayout Layout() { return *BlockLayout::FromWire(kTotal, 2, 256); }

v1::TrainingJob Job() {
  v1::TrainingJob job;
  job.mutable_compression()->mutable_contributions()->mutable_top_k()->set_share(0.05);
  job.mutable_compression()->mutable_weights()->mutable_top_k()->set_share(0.1);
  return job;
}

std::shared_ptr<const CodecPlan> Plan(const v1::TrainingJob& job) {
  v1::ModelSchema schema;
  schema.set_total(kTotal);
  schema.set_trained(kTotal);
  v1::TensorSpec& tensor = *schema.add_tensors();
  tensor.set_name("dense/weight");
  tensor.add_shape(kTotal);
  return *CodecPlan::Of(job, schema, Layout());
}

ParameterClientOptions Options(const v1::TrainingJob& job = Job()) {
  ParameterClientOptions options;
  options.servers = {"a:1", "b:2"};
  options.job = 7;
  options.total = kTotal;
  options.block_elements = 256;
  options.codecs = Plan(job);
  return options;
}

std::vector<float> Wave(float phase) {
  std::vector<float> values(kTotal);
  for (size_t i = 0; i < kTotal; ++i) values[i] = std::sin(phase + static_cast<float>(i));
  return values;
}

TEST_CASE("a contribution is encoded once: every attempt sends the same bytes") {
  auto model = std::make_shared<FakeModel>(Layout());
  auto client = *ParameterClient::Open(
      Options(),
      testing::WithFaults({.drop_reply_every = 2, .drop_request_every = 3}, testing::Reach(model)));
  const std::vector<float> contribution = Wave(0);
  for (uint64_t clock = 0; clock < 6; ++clock) {
    REQUIRE(client->Wait(client->Push(clock, 1, contribution)).ok());
  }
  std::map<std::pair<uint64_t, uint32_t>, std::set<std::string>> sent;
  for (const auto& request : model->requests()) {
    CHECK(request.header.encoding() == v1::ENCODING_TOP_K);
    sent[{request.header.clock(), request.header.block()}].insert(request.payload);
  }
  CHECK(sent.size() == 18);
  CHECK(model->requests().size() > 18);
  for (const auto& [call, payloads] : sent) CHECK(payloads.size() == 1);
}

TEST_CASE("what encodings lose is the residual: nothing is lost for good") {
  auto model = std::make_shared<FakeModel>(Layout());
  auto client = *ParameterClient::Open(Options(), testing::Reach(model));
  REQUIRE(client->encoder() != nullptr);
  const std::vector<float> contribution = Wave(1);
  for (uint64_t clock = 0; clock < 4; ++clock) {
    REQUIRE(client->Wait(client->Push(clock, 1, contribution)).ok());
  }
  // This includes the headers.
  CHECK(client->traffic().sent < 4 * kTotal * sizeof(float) / 5);
  std::vector<float> residual(kTotal);
  REQUIRE(client->encoder()->Read(4, residual).ok());
  const std::vector<float> weights = model->weights();
  for (size_t i = 0; i < kTotal; ++i) {
    CHECK(residual[i] - weights[i] == Approx(4 * contribution[i]).margin(1e-5));
  }
}

TEST_CASE("the residual can be read as it was before the latest contribution, and set") {
  const auto codec = *MakeCodec(Job().compression().contributions());
  const BlockLayout layout = Layout();
  Residuals residuals(layout), resumed(layout);
  const std::vector<float> values = Wave(2);
  const auto encode = [&](Residuals& target, uint32_t block, uint64_t clock) {
    const ElementRange range = layout.Range(block);
    const EncodedContribution encoded =
        target.Encode(*codec, block, clock, std::span(values).subspan(range.offset, range.count));
    return std::vector<uint8_t>(encoded.bytes.begin(), encoded.bytes.end());
  };
  for (uint32_t block = 0; block < 3; ++block) encode(residuals, block, 0);
  std::vector<float> whole(kTotal), broken_off(kTotal);
  REQUIRE(residuals.Read(1, whole).ok());
  // Clock 1 breaks off after two blocks.
  const auto first = encode(residuals, 2, 1);
  const auto second = encode(residuals, 1, 1);
  REQUIRE(residuals.Read(1, broken_off).ok());
  CHECK(broken_off == whole);
  REQUIRE(residuals.Read(2, broken_off).ok());
  CHECK(broken_off != whole);
  REQUIRE(resumed.Set(whole).ok());
  CHECK(encode(resumed, 2, 1) == first);
  CHECK(encode(resumed, 1, 1) == second);
  // Once more, the same.
  CHECK(encode(residuals, 2, 1) == first);
}

TEST_CASE("what a dropped contribution took of the residual comes back") {
  const auto codec = *MakeCodec(Job().compression().contributions());
  const BlockLayout layout = Layout();
  Residuals dropped(layout), never(layout);
  const auto encode = [&](Residuals& target, uint32_t block, uint64_t clock) {
    const std::vector<float> values = Wave(static_cast<float>(clock));
    const ElementRange range = layout.Range(block);
    const EncodedContribution encoded =
        target.Encode(*codec, block, clock, std::span(values).subspan(range.offset, range.count));
    return std::vector<uint8_t>(encoded.bytes.begin(), encoded.bytes.end());
  };
  for (uint32_t block = 0; block < 3; ++block) {
    for (Residuals* target : {&dropped, &never}) encode(*target, block, 0);
  }
  // Block 0 of clock 1 was never encoded.
  encode(dropped, 2, 1);
  encode(dropped, 1, 1);
  dropped.Undo(1);
  for (uint32_t block = 0; block < 3; ++block) {
    CHECK(encode(dropped, block, 3) == encode(never, block, 3));
  }
  std::vector<float> after(kTotal), expected(kTotal);
  REQUIRE(dropped.Read(4, after).ok());
  REQUIRE(never.Read(4, expected).ok());
  CHECK(after == expected);
  REQUIRE(dropped.Read(3, after).ok());
  REQUIRE(never.Read(3, expected).ok());
  CHECK(after == expected);
}

TEST_CASE("a client asks for changes since what its vector holds, and for all else in full") {
  auto model = std::make_shared<FakeModel>(Layout());
  auto client = *ParameterClient::Open(Options(), testing::Reach(model));
  std::vector<float> weights(kTotal), other(kTotal);
  REQUIRE(client->Wait(client->Pull(4, weights)).ok());
  REQUIRE(client->Wait(client->Pull(5, weights)).ok());
  REQUIRE(client->Wait(client->Pull(6, other)).ok());
  REQUIRE(client->Wait(client->Pull(7, weights)).ok());
  REQUIRE(client->Wait(client->PullLatest(weights)).ok());
  REQUIRE(client->Wait(client->Pull(8, weights)).ok());
  std::vector<std::optional<uint64_t>> have;
  for (const auto& request : model->requests()) {
    if (request.header.block() != 0) continue;
    have.push_back(request.header.has_have_version() ? std::optional(request.header.have_version())
                                                     : std::nullopt);
    CHECK(request.header.reply_encoding() ==
          (request.reads == ReadKind::kLatest ? v1::ENCODING_RAW : v1::ENCODING_TOP_K));
  }
  // The fake's version is the clock plus one.
  const std::vector<std::optional<uint64_t>> expected = {
      std::nullopt, 5, std::nullopt, std::nullopt, std::nullopt, std::nullopt};
  CHECK(have == expected);
}

std::optional<uint64_t> VersionNamed(const PayloadCodecs& codecs, const float* target,
                                     TransportRequest::Kind kind,
                                     ReadKind reads = ReadKind::kAtClock) {
  TransportRequest request;
  request.kind = kind;
  request.reads = reads;
  codecs.Ask(target, request);
  if (!request.header.has_have_version()) return std::nullopt;
  return request.header.have_version();
}

TEST_CASE("where weights stay, who reads names the version that it has, and keeps it") {
  using Kind = TransportRequest::Kind;
  const bool stay = GENERATE(true, false);
  const auto held = stay ? std::optional<uint64_t>(3) : std::nullopt;
  const BlockLayout layout = Layout();
  PayloadCodecs codecs(layout, nullptr, stay);
  const std::vector<float> weights(256, 1.0f);
  std::vector<float> target(256), other(256);
  CHECK(VersionNamed(codecs, target.data(), Kind::kPull) == std::nullopt);
  TransportReply full;
  full.version.set_version(3);
  full.payload = FloatPayload::Of(weights);
  const ReadKind reads = GENERATE(ReadKind::kAtClock, ReadKind::kLatest);
  REQUIRE(codecs.Take(full, reads, target).ok());
  for (const ReadKind again : {ReadKind::kAtClock, ReadKind::kLatest}) {
    CHECK(VersionNamed(codecs, target.data(), Kind::kPull, again) == held);
    CHECK(VersionNamed(codecs, other.data(), Kind::kPull, again) == std::nullopt);
  }
  // The version after a contribution is another one.
  CHECK(VersionNamed(codecs, target.data(), Kind::kPushPull) == std::nullopt);

  TransportReply unchanged;
  unchanged.version.set_version(3);
  unchanged.version.set_unchanged(true);
  CHECK(codecs.Take(unchanged, reads, target).ok() == stay);
  CHECK(target == weights);
  // If another call has changed the version meanwhile, the block must be asked for again.
  CHECK(absl::IsUnavailable(codecs.Take(unchanged, reads, other)) == stay);
  // An answer that does not fit leaves no version that could be named.
  full.payload = FloatPayload::Of(std::span(weights).first(3));
  CHECK(absl::IsInvalidArgument(codecs.Take(full, reads, target)));
  CHECK(VersionNamed(codecs, target.data(), Kind::kPull) == std::nullopt);
}

TEST_CASE("a moving average is no version of the weights, and leaves known what is") {
  using Kind = TransportRequest::Kind;
  PayloadCodecs codecs(Layout(), nullptr, true);
  const std::vector<float> weights(256, 1.0f), means(256, 2.0f);
  std::vector<float> target(256), average(256);
  TransportReply reply;
  reply.version.set_version(3);
  reply.payload = FloatPayload::Of(weights);
  REQUIRE(codecs.Take(reply, ReadKind::kLatest, target).ok());
  CHECK(VersionNamed(codecs, target.data(), Kind::kPull, ReadKind::kAverage) == std::nullopt);
  reply.payload = FloatPayload::Of(means);
  REQUIRE(codecs.Take(reply, ReadKind::kAverage, average).ok());
  CHECK(average == means);
  CHECK(VersionNamed(codecs, average.data(), Kind::kPull, ReadKind::kLatest) == std::nullopt);
  CHECK(VersionNamed(codecs, target.data(), Kind::kPull, ReadKind::kLatest) == 3);
  reply.payload = FloatPayload::Of(std::span(means).first(3));
  CHECK(absl::IsInvalidArgument(codecs.Take(reply, ReadKind::kAverage, average)));
}

TEST_CASE("weights that are decoded are not named as a version, though they stay") {
  v1::TrainingJob job = Job();
  job.mutable_compression()->mutable_weights()->mutable_int8();
  const BlockLayout layout = Layout();
  PayloadCodecs codecs(layout, Plan(job), true);
  const std::vector<float> weights(256, 1.0f);
  std::vector<float> target(256);
  TransportReply full;
  full.version.set_version(3);
  full.payload = FloatPayload::Of(weights);
  REQUIRE(codecs.Take(full, ReadKind::kAtClock, target).ok());
  CHECK(VersionNamed(codecs, target.data(), TransportRequest::Kind::kPull) == std::nullopt);
}

TEST_CASE("changes that do not fit what is there are an error") {
  const BlockLayout layout = Layout();
  PayloadCodecs codecs(layout, Plan(Job()));
  std::vector<float> weights(256, 1.0f);
  const auto codec = *MakeCodec(Job().compression().weights());
  std::vector<uint8_t> bytes(codec->MaxBytes(256));
  bytes.resize(codec->Encode(std::vector<float>(256, 2.0f), {}, bytes));
  TransportReply full;
  full.version.set_version(3);
  full.payload = FloatPayload::Of(weights);
  std::vector<float> target(256);
  TransportReply change;
  change.version.set_version(4);
  change.version.set_encoding(v1::ENCODING_TOP_K);
  change.version.set_since_version(3);
  change.payload = FloatPayload(nullptr, {bytes});
  CHECK(absl::IsInvalidArgument(codecs.Take(change, ReadKind::kAtClock, target)));
  REQUIRE(codecs.Take(full, ReadKind::kAtClock, target).ok());
  REQUIRE(codecs.Take(change, ReadKind::kAtClock, target).ok());
  CHECK(target[0] == 3);
  CHECK(absl::IsInvalidArgument(codecs.Take(change, ReadKind::kAtClock, target)));
  TransportReply unchanged;
  unchanged.version.set_version(4);
  unchanged.version.set_unchanged(true);
  CHECK(absl::IsInvalidArgument(codecs.Take(unchanged, ReadKind::kAtClock, target)));
  change.payload = FloatPayload(nullptr, {std::span(bytes).first(3)});
  REQUIRE(codecs.Take(full, ReadKind::kAtClock, target).ok());
  CHECK(absl::IsInvalidArgument(codecs.Take(change, ReadKind::kAtClock, target)));
}

}  // namespace
}  // namespace leeway::codecs
