// The names of tensors in models of PyTorch, torchvision and Hugging Face. All these names are in
// the tables of torch_names.cc.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace leeway {

// Returns the names of tensor `tensor` of layer `layer`. The first name is the one that Leeway
// writes; Leeway also reads the others. A layer without a name of its own, TYPE_i, is module i of
// an nn.Sequential.
//     layer1.0.shortcut.0, weight -> layer1.0.downsample.0.weight, layer1.0.shortcut.0.weight
//     dense_2, bias -> 2.bias, dense_2.bias
//     h.0.attention.attn, qkv_weight -> h.0.attn.c_attn.weight, h.0.attention.attn.qkv_weight
std::vector<std::string> TorchNames(absl::string_view layer, absl::string_view tensor);

// Removes the prefixes that wrappers put before all names: module.conv1.weight -> conv1.weight.
absl::string_view WithoutWrapper(absl::string_view name);

// Returns true if a tensor of a state_dict that matches nothing in the model is a counter or a
// mask, and so is not a weight. `rank` is the number of its dimensions.
bool IsNoWeight(absl::string_view name, size_t rank);

// A model with tied scores stores one weight for the embedding and the output layer. If `name`,
// without wrapper, is the weight of such an output layer, returns the name of the embedding's
// weight. The two weights must be equal. Returns an empty string for any other name.
absl::string_view TiedTo(absl::string_view name);

// Returns true if the layer is one of GPT-2's layers whose weights are [in, out] in the file, too
// ("Conv1D").
bool KeepsInputsFirst(absl::string_view layer);

// Returns the module number of each name if all names belong to one nn.Sequential, whatever the
// name of that nn.Sequential is: {"net.0.weight", "net.2.bias"} -> {0, 2}. Otherwise returns
// nothing.
std::optional<std::vector<size_t>> SequentialNumbers(std::span<const absl::string_view> names);

}  // namespace leeway
