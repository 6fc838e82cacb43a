#include "launcher/doctor/traffic.h"

#include "tests/catch.h"

namespace leeway::traffic {
namespace {

// A large tensor and a small one, in blocks of 1 KiB.
v1::ModelSchema TwoLayers() {
  v1::ModelSchema schema;
  schema.set_total(1024 + 256);
  schema.set_trained(schema.total());
  uint64_t offset = 0;
  for (const auto& [name, elements] :
       {std::pair{"dense_0/weight", 1024}, {"dense_1/weight", 256}}) {
    v1::TensorSpec& tensor = *schema.add_tensors();
    tensor.set_name(name);
    tensor.add_shape(elements);
    tensor.set_offset(offset);
    offset += elements;
  }
  return schema;
}

PlannedTraffic Of(const v1::TrainingJob& job) {
  const auto layout = BlockLayout::FromWire(TwoLayers().total(), 1, 256);
  const auto traffic = TrafficOf(job, TwoLayers(), *layout);
  REQUIRE(traffic.status() == absl::OkStatus());
  return *traffic;
}

TEST_CASE("without compression every value is four bytes each way") {
  const PlannedTraffic traffic = Of(v1::TrainingJob());
  CHECK(traffic.sent == 1280 * 4);
  CHECK(traffic.received == 1280 * 4);
  CHECK(traffic.codecs.empty());
}

TEST_CASE("what a codec saves, each way, and which blocks take it") {
  v1::TrainingJob job;
  job.mutable_compression()->mutable_contributions()->mutable_bf16();
  job.mutable_compression()->mutable_weights()->mutable_none();
  CHECK(Of(job).sent == 1280 * 2);
  CHECK(Of(job).received == 1280 * 4);
  CHECK(Of(job).codecs == "contributions bf16, weights none");

  v1::LayerCompression& small = *job.mutable_compression()->add_layers();
  small.add_names("dense_1");
  small.mutable_contributions()->mutable_none();
  CHECK(Of(job).sent == 1024 * 2 + 256 * 4);
  CHECK(Of(job).codecs == "contributions none for 1 block and bf16 for 4 blocks, weights none");
}

TEST_CASE("auto counts as none, and says so") {
  v1::TrainingJob job;
  job.mutable_compression()->mutable_contributions()->mutable_auto_();
  job.mutable_compression()->mutable_weights()->mutable_none();
  CHECK(Of(job).sent == 1280 * 4);
  CHECK_THAT(Of(job).codecs, Catch::Contains("auto"));
}

}  // namespace
}  // namespace leeway::traffic
