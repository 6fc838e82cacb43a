#include "common/update/factors.h"

#include <string>
#include <vector>

#include <google/protobuf/text_format.h>

#include "tests/catch.h"

namespace leeway::factors {
namespace {

using google::protobuf::TextFormat;

v1::Update Parse(const std::string& text) {
  v1::Update update;
  REQUIRE(TextFormat::ParseFromString(text, &update));
  return update;
}

// Tensors of these kinds and sizes; the last one is averaged.
v1::ModelSchema Schema(const std::vector<std::pair<v1::TensorKind, uint64_t>>& tensors) {
  v1::ModelSchema schema;
  for (const auto& [kind, elements] : tensors) {
    v1::TensorSpec& tensor = *schema.add_tensors();
    tensor.set_offset(schema.total());
    tensor.add_shape(elements);
    tensor.set_kind(kind);
    schema.set_trained(schema.total());
    schema.set_total(schema.total() + elements);
  }
  return schema;
}

struct Part {
  size_t end;
  double rate, decay;
  bool operator==(const Part&) const = default;
};

std::vector<Part> Plain(const std::vector<UpdatePart>& parts) {
  std::vector<Part> plain;
  for (const UpdatePart& part : parts) plain.push_back({part.end, part.rate, part.decay});
  return plain;
}

const v1::ModelSchema& Mixed() {
  static const v1::ModelSchema schema = Schema({{v1::TENSOR_KIND_EMBEDDING, 10},
                                                {v1::TENSOR_KIND_WEIGHT, 20},
                                                {v1::TENSOR_KIND_BIAS, 3},
                                                {v1::TENSOR_KIND_NORM, 3},
                                                {v1::TENSOR_KIND_NORM, 4},
                                                {v1::TENSOR_KIND_WEIGHT, 5},
                                                {v1::TENSOR_KIND_NORM, 6}});
  return schema;
}

TEST_CASE("each kind of tensor has its factors, neighbours that are alike are one part") {
  CHECK(Plain(UpdatePartsOf(Mixed(), Parse("factors { biases { weight_decay: 0 } "
                                           "norms { weight_decay: 0 } }"))) ==
        std::vector<Part>{{30, 1, 1}, {40, 1, 0}, {45, 1, 1}});
  CHECK(Plain(UpdatePartsOf(Mixed(), Parse("factors { embeddings { learning_rate: 0.5 } "
                                           "norms { learning_rate: 2 weight_decay: 3 } }"))) ==
        std::vector<Part>{{10, 0.5, 1}, {33, 1, 1}, {40, 2, 3}, {45, 1, 1}});
}

TEST_CASE("where every factor is 1 there are no parts, so nothing is done that costs") {
  for (const char* update :
       {"", "factors {}", "factors { biases {} }", "factors { norms { learning_rate: 1 } }"}) {
    CAPTURE(update);
    CHECK(UpdatePartsOf(Mixed(), Parse(update)).empty());
  }
  // There is no tensor of this kind.
  CHECK(UpdatePartsOf(Schema({{v1::TENSOR_KIND_WEIGHT, 5}, {v1::TENSOR_KIND_NORM, 2}}),
                      Parse("factors { biases { weight_decay: 0 } }"))
            .empty());
}

TEST_CASE("a tensor's own factors are multiplied with those of its kind") {
  v1::ModelSchema schema = Mixed();
  schema.mutable_tensors(1)->mutable_factors()->set_weight_decay(0);
  schema.mutable_tensors(3)->mutable_factors()->set_learning_rate(0.5);
  schema.mutable_tensors(3)->mutable_factors()->set_weight_decay(4);
  schema.mutable_tensors(4)->mutable_factors();
  // This tensor is averaged, not trained.
  schema.mutable_tensors(6)->mutable_factors()->set_learning_rate(7);
  CHECK(Plain(UpdatePartsOf(schema, Parse(""))) ==
        std::vector<Part>{{10, 1, 1}, {30, 1, 0}, {33, 1, 1}, {36, 0.5, 4}, {45, 1, 1}});
  CHECK(Plain(UpdatePartsOf(schema,
                            Parse("factors { norms { learning_rate: 2 weight_decay: 3 } }"))) ==
        std::vector<Part>{{10, 1, 1}, {30, 1, 0}, {33, 1, 1}, {36, 1, 12}, {40, 2, 3}, {45, 1, 1}});
  // All factors are 1.
  schema.mutable_tensors(1)->clear_factors();
  schema.mutable_tensors(3)->clear_factors();
  CHECK(UpdatePartsOf(schema, Parse("")).empty());
}

TEST_CASE("the parts end with the last tensor that is trained, whatever its factors") {
  const v1::ModelSchema schema =
      Schema({{v1::TENSOR_KIND_WEIGHT, 4}, {v1::TENSOR_KIND_NORM, 3}, {v1::TENSOR_KIND_NORM, 2}});
  CHECK(Plain(UpdatePartsOf(schema, Parse("factors { norms { weight_decay: 0 } }"))) ==
        std::vector<Part>{{4, 1, 1}, {7, 1, 0}});
}

TEST_CASE("elements of no tensor have no factors, nor have tensors of a kind not known here") {
  v1::ModelSchema schema = Mixed();
  schema.mutable_tensors()->DeleteSubrange(3, 4);
  schema.mutable_tensors(0)->set_kind(static_cast<v1::TensorKind>(99));
  CHECK(Plain(UpdatePartsOf(schema, Parse("factors { biases { weight_decay: 0 } "
                                          "embeddings { weight_decay: 0 } }"))) ==
        std::vector<Part>{{30, 1, 1}, {33, 1, 0}, {45, 1, 1}});
}

TEST_CASE("the parts of two lists are multiplied element by element") {
  const std::vector<UpdatePart> one = {{10, 2, 3}, {20, 4, 1}};
  const std::vector<UpdatePart> other = {{5, 0.5, 1}, {10, 1, 1}, {15, 3, 1}, {20, 0, 1}};
  CHECK(Plain(Multiplied(one, other)) ==
        std::vector<Part>{{5, 1, 3}, {10, 2, 3}, {15, 12, 1}, {20, 0, 1}});
  CHECK(Plain(Multiplied(other, one)) == Plain(Multiplied(one, other)));
  CHECK(Plain(Multiplied({}, one)) == Plain(one));
  CHECK(Plain(Multiplied(one, {})) == Plain(one));
  CHECK(Multiplied({}, {}).empty());
}

TEST_CASE("blocks have the parts that lie in them, counted from their own beginning") {
  const auto all = UpdatePartsOf(Mixed(), Parse("factors { biases { weight_decay: 0 } "
                                                "norms { learning_rate: 2 } }"));
  REQUIRE(Plain(all) == std::vector<Part>{{30, 1, 1}, {33, 1, 0}, {40, 2, 1}, {45, 1, 1}});
  CHECK(Plain(PartsWithin(all, {0, 51})) == Plain(all));
  CHECK(Plain(PartsWithin(all, {0, 30})) == std::vector<Part>{{30, 1, 1}});
  CHECK(Plain(PartsWithin(all, {30, 3})) == std::vector<Part>{{3, 1, 0}});
  CHECK(Plain(PartsWithin(all, {31, 4})) == std::vector<Part>{{2, 1, 0}, {4, 2, 1}});
  // Elements behind the trained ones.
  CHECK(Plain(PartsWithin(all, {42, 9})) == std::vector<Part>{{3, 1, 1}});
  CHECK(PartsWithin(all, {45, 6}).empty());
  CHECK(PartsWithin({}, {0, 51}).empty());
}

}  // namespace
}  // namespace leeway::factors
