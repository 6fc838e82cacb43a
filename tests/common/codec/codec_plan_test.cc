#include <google/protobuf/text_format.h>

#include "common/codec/plan.h"
#include "tests/catch.h"

namespace leeway::codec_plan {
namespace {

// conv [0, 40), bias [40, 44), head [44, 148), running mean and variance [148, 156).
v1::ModelSchema Schema() {
  v1::ModelSchema schema;
  const auto add = [&](const char* name, std::vector<uint64_t> shape) {
    v1::TensorSpec& tensor = *schema.add_tensors();
    tensor.set_name(name);
    tensor.set_offset(schema.total());
    uint64_t elements = 1;
    for (const uint64_t size : shape) {
      tensor.add_shape(size);
      elements *= size;
    }
    schema.set_total(schema.total() + elements);
  };
  add("conv/weight", {2, 20});
  add("conv/bias", {4});
  add("head/weight", {104});
  schema.set_trained(schema.total());
  add("norm/running_mean", {4});
  add("norm/running_variance", {4});
  return schema;
}

v1::Compression Parse(const std::string& text) {
  v1::Compression compression;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &compression));
  return compression;
}

absl::StatusOr<CodecPlan> PlanOf(const std::string& text) {
  const v1::ModelSchema schema = Schema();
  // Blocks of 16 elements: 0-1 conv, 2 conv, bias and head, 3-8 head, 9 the last of head and norm.
  return CodecPlan::Make(Parse(text), schema, BlockLayout::FromWire(156, 2, 16).value());
}

std::string Encodings(const std::string& text, bool contributions) {
  const absl::StatusOr<CodecPlan> plan = PlanOf(text);
  if (!plan.ok()) return std::string(plan.status().message());
  std::string names;
  for (uint32_t block = 0; block < 10; ++block) {
    const Codec& codec = contributions ? plan->contribution(block) : plan->weights(block);
    const char* const letters[] = {"-", "b", "f", "8", "k", "s"};
    names += letters[codec.encoding()];
  }
  return names;
}

TEST_CASE("every block takes the job's choice, averaged elements lose little") {
  CHECK(Encodings("contributions {none {}} weights {none {}}", true) == "----------");
  CHECK(Encodings("contributions {bf16 {}} weights {none {}}", true) == "bbbbbbbbbb");
  CHECK(Encodings("contributions {bf16 {}} weights {none {}}", false) == "----------");
  CHECK(Encodings("contributions {int8 {}} weights {int8 {}}", true) == "888888888b");
  CHECK(Encodings("contributions {fp16 {}} weights {fp16 {}}", true) == "fffffffff-");
  CHECK(Encodings("contributions {int8 {}} weights {int8 {}}", false) == "888888888b");
  CHECK(Encodings("contributions {fp16 {}} weights {fp16 {}}", false) == "ffffffffff");
  CHECK(Encodings("contributions {sign {}} weights {none {}}", true) == "sssssssssb");
  CHECK(Encodings("contributions {top_k {share: 0.1}} weights {top_k {}}", true) == "kkkkkkkkkb");
  CHECK(Encodings("contributions {top_k {share: 0.1}} weights {top_k {}}", false) == "kkkkkkkkkb");
}

TEST_CASE("a block with several choices takes the one that loses least") {
  const std::string most = "contributions {top_k {}} weights {int8 {}} ";
  CHECK(Encodings(most + "layers {names: 'conv' contributions {bf16 {}}}", true) == "bbbkkkkkkb");
  CHECK(Encodings(most + "layers {names: 'conv' contributions {bf16 {}}}", false) == "888888888b");
  CHECK(Encodings(most + "layers {names: 'head' contributions {none {}}}", true) == "kk--------");
  CHECK(Encodings(most + "layers {names: 'norm' names: 'conv' weights {none {}}}", false) ==
        "---888888-");
  CHECK(Encodings(most + "layers {names: 'norm' contributions {sign {}}}", true) == "kkkkkkkkkb");
  // The order: none, fp16, bf16, int8, sign, top_k.
  const char* const order[] = {"none", "fp16", "bf16", "int8", "sign", "top_k"};
  const std::string letters = "-fb8sk";
  for (size_t a = 0; a < 6; ++a) {
    for (size_t b = 0; b < 6; ++b) {
      const std::string text =
          absl::StrCat("contributions {", order[a], " {}} weights {none {}} layers {names: 'head' ",
                       "contributions {", order[b], " {}}}");
      CHECK(Encodings(text, true)[2] == letters[std::min(a, b)]);
    }
  }
}

TEST_CASE("of two shares the larger one loses less") {
  const absl::StatusOr<CodecPlan> plan = PlanOf(
      "contributions {top_k {share: 0.01}} weights {none {}} "
      "layers {names: 'head' contributions {top_k {share: 0.5}}}");
  REQUIRE(plan.ok());
  CHECK(&plan->contribution(0) == &plan->contribution(1));
  CHECK(&plan->contribution(2) == &plan->contribution(3));
  CHECK(plan->contribution(0).MaxBytes(1000) < plan->contribution(3).MaxBytes(1000));
}

TEST_CASE("a plan says whether anything is lost at all") {
  CHECK_FALSE(PlanOf("contributions {none {}} weights {none {}}")->compresses_contributions());
  CHECK_FALSE(PlanOf("contributions {none {}} weights {bf16 {}}")->compresses_contributions());
  CHECK(PlanOf("contributions {none {}} weights {bf16 {}}")->compresses_weights());
  CHECK(PlanOf("contributions {none {}} weights {none {}} "
               "layers {names: 'head' contributions {int8 {}}}")
            ->compresses_contributions());
}

TEST_CASE("a compression that does not fit the model is refused") {
  CHECK(Encodings("contributions {none {}} weights {none {}} layers {names: 'tail'}", true) ==
        "compression.layers: the model has no layer 'tail' with tensors");
  CHECK(Encodings("contributions {auto {}} weights {none {}}", true) ==
        "codec: auto has not been resolved");
  CHECK(CodecPlan::Make(Parse("contributions {none {}} weights {none {}}"), Schema(),
                        BlockLayout::FromWire(150, 2, 16).value())
            .status()
            .message() == "compression: the model has 156 elements, but its blocks have 150");
}

}  // namespace
}  // namespace leeway::codec_plan
