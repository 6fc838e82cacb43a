// What PyTorch's, torchvision's and Hugging Face's models call their tensors. All that is known of
// names is in the tables of torch_names.cc.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace leeway {

// For tensor `tensor` of layer `layer`: first the name that is written, then others that are read,
// too. A layer without a name of its own, TYPE_i, is the i of an nn.Sequential.
//   layer1.0.shortcut.0, weight -> layer1.0.downsample.0.weight, layer1.0.shortcut.0.weight
//   dense_2, bias -> 2.bias, dense_2.bias
//   h.0.attention.attn, qkv_weight -> h.0.attn.c_attn.weight, h.0.attention.attn.qkv_weight
std::vector<std::string> TorchNames(absl::string_view layer, absl::string_view tensor);

// Without what wrappers put before all names: module.conv1.weight -> conv1.weight.
absl::string_view WithoutWrapper(absl::string_view name);

// Whether a tensor of a state_dict that no tensor of the model is called for is no weight: counters
// and masks. `rank`: its dimensions.
bool IsNoWeight(absl::string_view name, size_t rank);

// Of a name without wrapper: an output layer's weight that a model with tied scores has only once,
// and the weight that it must then be equal to. Empty for any other.
absl::string_view TiedTo(absl::string_view name);

// Whether the layer is one of GPT-2's, whose weights are [in, out] in the file, too ("Conv1D").
bool KeepsInputsFirst(absl::string_view layer);

// Numbers of the modules, where all names are those of an nn.Sequential, whatever it is called
// within its model: {"net.0.weight", "net.2.bias"} -> {0, 2}; by name. Absent where one name is
// not.
std::optional<std::vector<size_t>> SequentialNumbers(std::span<const absl::string_view> names);

}  // namespace leeway
