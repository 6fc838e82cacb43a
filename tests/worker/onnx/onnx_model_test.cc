// That the graphs are right is shown by tests/training/model_files.py, where other programs check
// and run them.
#include "worker/onnx/onnx_model.h"

#include <algorithm>

#include "common/job_key.h"
#include "tests/worker/model/support.h"

namespace leeway::testing {
namespace {

absl::StatusOr<onnx::ModelProto> Onnx(const std::string& layers, const ImageShape& input) {
  const v1::Model config = ParseModel(layers + " loss: LOSS_SOFTMAX_CROSS_ENTROPY");
  const auto backend = TestBackend();
  const auto model = Model::Build(config, input, 1, *backend);
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
}  // namespace leeway::testing
