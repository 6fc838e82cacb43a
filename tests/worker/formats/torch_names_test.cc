#include "worker/formats/torch_names.h"

#include "tests/catch.h"

namespace leeway::torch_names {
namespace {

using Names = std::vector<std::string>;

TEST_CASE("names are those of torchvision and of nn.Sequential, and others are read") {
  CHECK(TorchNames("layer1.0.conv1", "weight") == Names{"layer1.0.conv1.weight"});
  CHECK(TorchNames("layer2.0.shortcut.0", "weight") ==
        Names{"layer2.0.downsample.0.weight", "layer2.0.shortcut.0.weight"});
  CHECK(TorchNames("dense_2", "bias") == Names{"2.bias", "dense_2.bias"});
  CHECK(TorchNames("repeat_1.2.max_pool_3", "x") == Names{"1.2.3.x", "repeat_1.2.max_pool_3.x"});
  CHECK(TorchNames("h.0.attention.attn", "out_bias") ==
        Names{"h.0.attn.c_proj.bias", "h.0.attention.attn.out_bias"});
  CHECK(TorchNames("h.11.mlp.ln_2", "weight").front() == "h.11.ln_2.weight");
  CHECK(TorchNames("h.11.mlp.c_fc", "weight").front() == "h.11.mlp.c_fc.weight");
  CHECK(TorchNames("features.0.1", "running_mean") == Names{"features.0.1.running_mean"});
}

TEST_CASE("a name of one's own that only looks like a default stays") {
  CHECK(TorchNames("head_2", "weight") == Names{"head_2.weight"});
  CHECK(TorchNames("dense_x", "weight") == Names{"dense_x.weight"});
  CHECK(TorchNames("layer_1", "weight") == Names{"layer_1.weight"});
  CHECK(TorchNames("name_1", "weight") == Names{"name_1.weight"});
}

TEST_CASE("wrappers go, however many") {
  CHECK(WithoutWrapper("module.conv1.weight") == "conv1.weight");
  CHECK(WithoutWrapper("module._orig_mod.transformer.h.0.ln_1.bias") == "h.0.ln_1.bias");
  CHECK(WithoutWrapper("conv1.module.weight") == "conv1.module.weight");
}

TEST_CASE("counters and masks are no weights, biases are") {
  CHECK(IsNoWeight("bn1.num_batches_tracked", 0));
  CHECK(IsNoWeight("h.0.attn.bias", 4));
  CHECK(IsNoWeight("h.0.attn.masked_bias", 0));
  CHECK_FALSE(IsNoWeight("h.0.attn.bias", 1));
  CHECK_FALSE(IsNoWeight("fc.bias", 1));
}

TEST_CASE("GPT-2's output layer is its embedding, and its layers have inputs first") {
  CHECK(TiedTo("lm_head.weight") == "wte.weight");
  CHECK(TiedTo("head.weight") == "");
  CHECK(KeepsInputsFirst("h.0.attn.c_attn"));
  CHECK(KeepsInputsFirst("c_fc"));
  CHECK_FALSE(KeepsInputsFirst("h.0.c_fc.0"));
  CHECK_FALSE(KeepsInputsFirst("fc"));
}

TEST_CASE("modules of an nn.Sequential have numbers, with whatever before them") {
  using Views = std::vector<absl::string_view>;
  using Numbers = std::vector<size_t>;
  CHECK(SequentialNumbers(Views{"10.weight", "2.bias"}) == Numbers{10, 2});
  CHECK(SequentialNumbers(Views{"net.0.weight", "net.2.weight"}) == Numbers{0, 2});
  CHECK_FALSE(SequentialNumbers(Views{"a.0.weight", "b.2.weight"}).has_value());
  CHECK_FALSE(SequentialNumbers(Views{"0.weight", "fc.weight"}).has_value());
  CHECK_FALSE(SequentialNumbers(Views{"weight"}).has_value());
  CHECK_FALSE(SequentialNumbers(Views{"-1.weight"}).has_value());
}

}  // namespace
}  // namespace leeway::torch_names
