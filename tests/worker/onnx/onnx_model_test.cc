// tests/training/model_files.py shows that the graphs are right: other programs check and run them
// there.
#include "worker/onnx/onnx_model.h"

#include <algorithm>

#include "common/job_key.h"
#include "tests/worker/model/support.h"

namespace leeway::testing::onnx_model {
namespace {

absl::StatusOr<onnx::ModelProto> Onnx(const std::string& layers, const ImageShape& input,
                                      size_t labels = 1) {
  const v1::Model config = ParseModel(layers + " loss: LOSS_SOFTMAX_CROSS_ENTROPY");
  const auto backend = TestBackend();
  const auto model = Model::Build(config, input, 1, *backend, labels);
  INFO(model.status());
  REQUIRE(model.ok());
  return MakeOnnxModel(config, **model, RandomValues((*model)->schema().total(), 1),
                       {{"job", "x"}});
}

std::vector<std::string> Operators(const onnx::ModelProto& document) {
  std::vector<std::string> operators;
  for (const onnx::NodeProto& node : document.graph().node()) operators.push_back(node.op_type());
  return operators;
}

using Texts = std::vector<std::string>;

TEST_CASE("images are channels first, and dropout is left out") {
  const auto document = Onnx(
      "layers { conv2d { filters: 4 kernel: 3 } } layers { relu6 {} } layers { dropout { rate: 0.5 "
      "} } "
      "layers { dense { units: 3 } }",
      {8, 6, 2});
  REQUIRE(document.ok());
  CHECK(Operators(*document) == Texts{"Conv", "Clip", "Flatten", "Gemm", "Identity"});
  const auto& input = document->graph().input(0).type().tensor_type().shape();
  REQUIRE(input.dim_size() == 4);
  CHECK(input.dim(0).dim_param() == "N");
  CHECK(input.dim(1).dim_value() == 2);
  CHECK(input.dim(2).dim_value() == 8);
  CHECK(input.dim(3).dim_value() == 6);
  const auto& weight = document->graph().initializer(0);
  CHECK(Texts{weight.name(), std::to_string(weight.dims(0))} == Texts{"0.weight", "4"});
  CHECK(document->graph().output(0).name() == "scores");
}

TEST_CASE("names of values are each there once, also where layers are called as their parts") {
  const auto document = Onnx(
      "layers { name: \"input\" dense { units: 3 } } layers { name: \"scores\" silu {} } "
      "layers { name: \"a\" gelu {} } layers { name: \"a.erf\" relu {} } layers { dense { units: 2 "
      "} }",
      {1, 1, 4});
  REQUIRE(document.ok());
  Texts names = {document->graph().input(0).name()};
  for (const auto& node : document->graph().node()) names.push_back(node.output(0));
  for (const auto& tensor : document->graph().initializer()) names.push_back(tensor.name());
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
}

std::vector<int64_t> Dimensions(const onnx::ValueInfoProto& value) {
  std::vector<int64_t> sides;
  for (const auto& side : value.type().tensor_type().shape().dim()) {
    sides.push_back(side.dim_param() == "N" ? -1 : side.dim_value());
  }
  return sides;
}

constexpr char kText[] =
    "layers { name: \"words\" embedding { vocabulary: 11 width: 8 } } "
    "layers { name: \"first\" attention { heads: 2 rotary: true causal: true } } "
    "layers { name: \"second\" attention { heads: 2 rotary: true causal: true } } "
    "layers { tied_dense { embedding: \"words\" } }";

TEST_CASE("a model of text takes tokens and has scores of each position") {
  const auto document = Onnx(kText, {5, 1, 1}, 5);
  INFO(document.status());
  REQUIRE(document.ok());
  const onnx::GraphProto& graph = document->graph();
  CHECK(Dimensions(graph.input(0)) == std::vector<int64_t>{-1, 5});
  CHECK(graph.input(0).type().tensor_type().elem_type() == onnx::TensorProto::INT64);
  CHECK(Dimensions(graph.output(0)) == std::vector<int64_t>{-1, 5, 11});
  CHECK(graph.output(0).type().tensor_type().elem_type() == onnx::TensorProto::FLOAT);
}

TEST_CASE("scores of a text have their positions, also where there is one") {
  const auto document = Onnx(kText, {1, 1, 1}, 1);
  INFO(document.status());
  REQUIRE(document.ok());
  CHECK(Dimensions(document->graph().input(0)) == std::vector<int64_t>{-1, 1});
  CHECK(Dimensions(document->graph().output(0)) == std::vector<int64_t>{-1, 1, 11});
}

TEST_CASE(
    "what layers share is there once: a tied weight, the mask, the tables of rotary positions") {
  const auto document = Onnx(kText, {5, 1, 1}, 5);
  REQUIRE(document.ok());
  Texts names;
  size_t of_words = 0;
  for (const auto& tensor : document->graph().initializer()) {
    names.push_back(tensor.name());
    if (tensor.dims_size() == 2 && tensor.dims(0) == 11) ++of_words;
  }
  CHECK(of_words == 1);
  for (const char* name : {"words.weight", "causal_mask_5", "rotary_sines_5x4",
                           "rotary_cosines_5x4", "rotary_halves_4"}) {
    CAPTURE(name);
    CHECK(std::count(names.begin(), names.end(), name) == 1);
  }
}

TEST_CASE("tokens that something else than an embedding takes are refused") {
  const auto document = Onnx(
      "layers { name: \"both\" concat { branches { layers { embedding { vocabulary: 11 width: 8 } "
      "} } "
      "branches { layers { name: \"raw\" relu {} } } } } layers { dense { units: 3 pointwise: true "
      "} }",
      {5, 1, 1}, 5);
  CHECK(absl::IsUnimplemented(document.status()));
  CHECK_THAT(std::string(document.status().message()), Catch::Contains("raw"));
}

TEST_CASE("a layer that features of a flattened image cannot go into is named") {
  const auto document = Onnx(
      "layers { flatten {} } layers { name: \"odd\" group_norm { groups: 2 } } layers { dense { "
      "units: 2 } }",
      {4, 4, 2});
  CHECK(absl::IsUnimplemented(document.status()));
  CHECK_THAT(std::string(document.status().message()), Catch::Contains("layer 'odd'"));
  CHECK(KeyOf(document.status()) == "model.layers.1");
}

}  // namespace
}  // namespace leeway::testing::onnx_model
