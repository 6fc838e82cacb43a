#include "worker/formats/feature_order.h"

#include "common/job_key.h"
#include "tests/worker/model/support.h"

namespace leeway::testing::feature_order {
namespace {

absl::StatusOr<std::vector<ImageShape>> ImagesOf(const std::string& layers,
                                                 const ImageShape& input) {
  const v1::Model config = ParseModel(layers + " loss: LOSS_SOFTMAX_CROSS_ENTROPY");
  const auto graph = MakeGraph(config, input);
  INFO(graph.status());
  REQUIRE(graph.ok());
  return FeatureImages(config, *graph);
}

constexpr ImageShape kImage{4, 4, 3};

TEST_CASE("features of a flattened image are followed to the dense layer that reads them") {
  const auto images = ImagesOf(
      "layers { flatten {} } layers { batch_norm {} } layers { relu {} } layers { dropout { rate: "
      "0.5 } } layers { dense { units: 7 } }",
      kImage);
  REQUIRE(images.ok());
  for (size_t value = 0; value < 5; ++value) CHECK((*images)[value] == kImage);
  CHECK((*images)[5] == ImageShape{1, 1, 7});
}

TEST_CASE("features that never were an image are their own, also behind a pool") {
  const auto images = ImagesOf(
      "layers { global_avg_pool {} } layers { flatten {} } layers { pad_channels { after: 2 } }",
      kImage);
  REQUIRE(images.ok());
  CHECK((*images)[1] == ImageShape{1, 1, 3});
  CHECK((*images)[2] == ImageShape{1, 1, 3});
  CHECK((*images)[3] == ImageShape{1, 1, 5});
}

TEST_CASE("two branches of one flattened image may be added") {
  const auto images = ImagesOf(
      "layers { flatten {} } layers { residual { layers { relu {} } } } layers { dense { units: 2 "
      "} "
      "}",
      kImage);
  REQUIRE(images.ok());
  CHECK((*images)[3] == kImage);
}

TEST_CASE("a layer that takes flattened pixels for channels is named") {
  for (const char* layer :
       {"group_norm { groups: 2 }", "pad_channels { after: 1 }", "conv2d { filters: 2 kernel: 1 }",
        "concat { branches { layers { relu {} } } branches { layers { tanh {} } } }"}) {
    CAPTURE(layer);
    const auto images = ImagesOf(
        "layers { flatten {} } layers { name: \"odd\" " + std::string(layer) + " }", kImage);
    CHECK(absl::IsUnimplemented(images.status()));
    CHECK_THAT(std::string(images.status().message()),
               Catch::Contains("layer 'odd'") && Catch::Contains("batch_norm, layer_norm"));
    CHECK(KeyOf(images.status()) == "model.layers.1");
  }
}

TEST_CASE("axes of flattened features have the channels first in a file") {
  CHECK(FeatureAxes({1, 1, 5}).order == std::vector<size_t>{0});
  CHECK(FeatureAxes(kImage).file_sides() == std::vector<uint64_t>{3, 4, 4});
  CHECK(LinearAxes({2, 4, 3}, 7).file_sides() == std::vector<uint64_t>{7, 3, 2, 4});
}

}  // namespace
}  // namespace leeway::testing::feature_order
