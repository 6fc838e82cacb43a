#include "worker/formats/torch_names.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "leeway/v1/job.pb.h"

namespace leeway {
namespace {

// Parts of names that differ between Leeway and other programs.
struct Renamed {
  absl::string_view ours;
  absl::string_view theirs;
};
constexpr Renamed kRenamed[] = {
    // Names of torchvision.
    {"shortcut", "downsample"},
    // Names of Hugging Face's GPT-2, which has the parts of a block at the same level.
    {"attention.ln_1", "ln_1"},
    {"attention.attn", "attn"},
    {"mlp.ln_2", "ln_2"},
    {"qkv_weight", "c_attn.weight"},
    {"qkv_bias", "c_attn.bias"},
    {"out_weight", "c_proj.weight"},
    {"out_bias", "c_proj.bias"},
};

// The prefixes of nn.DataParallel, torch.compile, Hugging Face's GPT2LMHeadModel, and a module that
// contains a model.
constexpr absl::string_view kWrappers[] = {"module.", "_orig_mod.", "transformer.", "model."};

struct NoWeight {
  absl::string_view suffix;
  // The number of dimensions. 0 stands for any number.
  size_t rank;
};
constexpr NoWeight kNoWeights[] = {
    {".num_batches_tracked", 0},
    // GPT-2's causal mask in older files. A layer's bias, in contrast, has one dimension.
    {".attn.bias", 4},
    {".attn.masked_bias", 0},
};

constexpr Renamed kTied[] = {{"lm_head.weight", "wte.weight"}};

constexpr absl::string_view kInputsFirst[] = {"c_attn", "c_proj", "c_fc"};

// Returns the i of a default name TYPE_i. Returns nothing for any other name.
std::optional<absl::string_view> DefaultIndex(absl::string_view part) {
  const size_t at = part.rfind('_');
  if (at == absl::string_view::npos) return std::nullopt;
  const absl::string_view index = part.substr(at + 1);
  size_t number = 0;
  if (!absl::SimpleAtoi(index, &number)) return std::nullopt;
  const auto* field = v1::Layer::descriptor()->FindFieldByName(std::string(part.substr(0, at)));
  if (field == nullptr || field->containing_oneof() == nullptr) return std::nullopt;
  return index;
}

// Returns `name` with its parts renamed as in other programs.
std::string Renaming(absl::string_view name) {
  std::string renamed = absl::StrCat(".", name, ".");
  for (const Renamed& part : kRenamed) {
    absl::StrReplaceAll({{absl::StrCat(".", part.ours, "."), absl::StrCat(".", part.theirs, ".")}},
                        &renamed);
  }
  return renamed.substr(1, renamed.size() - 2);
}

// The prefix and number of the module in a name such as "net.0.weight". Absent if the part before
// the last part is not a number.
struct Module {
  absl::string_view prefix;
  size_t number = 0;
};
std::optional<Module> ModuleOf(absl::string_view name) {
  const size_t tensor = name.rfind('.');
  if (tensor == absl::string_view::npos) return std::nullopt;
  const absl::string_view module = name.substr(0, tensor);
  const size_t part = module.rfind('.');
  const size_t begin = part == absl::string_view::npos ? 0 : part + 1;
  Module found{.prefix = module.substr(0, begin)};
  const absl::string_view number = module.substr(begin);
  const bool digits = !number.empty() && std::all_of(number.begin(), number.end(),
                                                     [](char c) { return c >= '0' && c <= '9'; });
  if (!digits || !absl::SimpleAtoi(number, &found.number)) return std::nullopt;
  return found;
}

}  // namespace

std::vector<std::string> TorchNames(absl::string_view layer, absl::string_view tensor) {
  std::vector<absl::string_view> parts = absl::StrSplit(layer, '.');
  const std::string plain = absl::StrCat(layer, ".", tensor);
  for (absl::string_view& part : parts) part = DefaultIndex(part).value_or(part);
  const std::string numbered = absl::StrCat(absl::StrJoin(parts, "."), ".", tensor);
  std::vector<std::string> names = {Renaming(numbered)};
  for (const std::string& other : {numbered, plain}) {
    if (std::find(names.begin(), names.end(), other) == names.end()) names.push_back(other);
  }
  return names;
}

absl::string_view WithoutWrapper(absl::string_view name) {
  for (bool found = true; found;) {
    found = false;
    for (const absl::string_view wrapper : kWrappers) {
      found = absl::ConsumePrefix(&name, wrapper) || found;
    }
  }
  return name;
}

bool IsNoWeight(absl::string_view name, size_t rank) {
  return std::any_of(std::begin(kNoWeights), std::end(kNoWeights), [&](const NoWeight& known) {
    return absl::EndsWith(name, known.suffix) && (known.rank == 0 || known.rank == rank);
  });
}

absl::string_view TiedTo(absl::string_view name) {
  for (const Renamed& tied : kTied) {
    if (name == tied.ours) return tied.theirs;
  }
  return "";
}

bool KeepsInputsFirst(absl::string_view layer) {
  const size_t dot = layer.rfind('.');
  const absl::string_view last = dot == absl::string_view::npos ? layer : layer.substr(dot + 1);
  return std::find(std::begin(kInputsFirst), std::end(kInputsFirst), last) !=
         std::end(kInputsFirst);
}

std::optional<std::vector<size_t>> SequentialNumbers(std::span<const absl::string_view> names) {
  std::vector<size_t> numbers;
  absl::string_view prefix;
  for (const absl::string_view name : names) {
    const std::optional<Module> module = ModuleOf(name);
    if (!module.has_value()) return std::nullopt;
    if (numbers.empty()) prefix = module->prefix;
    if (module->prefix != prefix) return std::nullopt;
    numbers.push_back(module->number);
  }
  return numbers;
}

}  // namespace leeway
