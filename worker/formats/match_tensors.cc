#include "worker/formats/match_tensors.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/counted.h"
#include "common/printable.h"
#include "common/status.h"
#include "worker/formats/torch_names.h"

namespace leeway {
namespace {

using Matches = std::vector<const StoredTensor*>;

constexpr size_t kShown = 5;

// Returns a string such as "3 tensors are missing: a, b, c".
std::string Listed(const std::vector<std::string>& names, absl::string_view is,
                   absl::string_view are) {
  const size_t shown = std::min(kShown, names.size());
  const std::vector<std::string> first(names.begin(),
                                       names.begin() + static_cast<ptrdiff_t>(shown));
  return absl::StrCat(
      Counted(names.size(), "tensor"), " ", names.size() == 1 ? is : are, ": ",
      absl::StrJoin(first, ", "),
      names.size() > shown ? absl::StrCat(" and ", names.size() - shown, " more") : "");
}

Matches MatchNames(const SafetensorsReader& file, const std::vector<FileTensor>& wanted) {
  // Tries whole names first, because a model may have a layer with the same name as a wrapper.
  std::map<absl::string_view, const StoredTensor*> by_name;
  for (const StoredTensor& tensor : file.tensors()) by_name.emplace(tensor.name, &tensor);
  for (const StoredTensor& tensor : file.tensors()) {
    by_name.emplace(WithoutWrapper(tensor.name), &tensor);
  }
  Matches matches;
  for (const FileTensor& tensor : wanted) {
    const StoredTensor* found = nullptr;
    for (const std::string& name : tensor.names) {
      const auto at = by_name.find(name);
      if (found == nullptr && at != by_name.end()) found = at->second;
    }
    matches.push_back(found);
  }
  return matches;
}

// Matches modules in the order of their numbers, and tensors by the last part of their names.
// Returns nothing if the file is not from an nn.Sequential, or has a different number of modules.
std::optional<Matches> MatchOrder(const SafetensorsReader& file,
                                  const std::vector<FileTensor>& wanted) {
  std::vector<absl::string_view> names;
  for (const StoredTensor& tensor : file.tensors()) names.push_back(tensor.name);
  const auto numbers = SequentialNumbers(names);
  if (!numbers.has_value()) return std::nullopt;
  const auto last_part = [](absl::string_view name) { return name.substr(name.rfind('.') + 1); };
  std::map<size_t, std::map<absl::string_view, const StoredTensor*>> modules;
  for (size_t i = 0; i < names.size(); ++i) {
    modules[(*numbers)[i]].emplace(last_part(names[i]), &file.tensors()[i]);
  }
  Matches matches;
  auto module = modules.begin();
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (i > 0 && wanted[i].layer != wanted[i - 1].layer) ++module;
    if (module == modules.end()) return std::nullopt;
    const auto found = module->second.find(last_part(wanted[i].names.front()));
    matches.push_back(found == module->second.end() ? nullptr : found->second);
  }
  return ++module == modules.end() ? std::optional(matches) : std::nullopt;
}

// Checks a model that computes scores with the embedding's weight. The file may have that weight
// twice, and then both copies must be equal.
absl::Status CheckTied(const SafetensorsReader& file, const StoredTensor& tensor,
                       const StoredTensor& other) {
  std::vector<float> values(tensor.elements()), same(other.elements());
  RETURN_IF_ERROR(file.Read(tensor, values));
  RETURN_IF_ERROR(file.Read(other, same));
  if (values == same) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("'", Printable(tensor.name), "' differs from '",
                                                 Printable(other.name),
                                                 "', but the job's model has one weight for both"));
}

// Returns the names of the file's tensors that match nothing in the model.
absl::StatusOr<std::vector<std::string>> LeftOver(const SafetensorsReader& file,
                                                  const std::vector<FileTensor>& wanted,
                                                  const Matches& matches) {
  const std::set<const StoredTensor*> used(matches.begin(), matches.end());
  std::vector<std::string> names;
  for (const StoredTensor& tensor : file.tensors()) {
    if (used.contains(&tensor) || IsNoWeight(tensor.name, tensor.shape.size())) continue;
    const absl::string_view tied = TiedTo(WithoutWrapper(tensor.name));
    const auto other = std::find_if(wanted.begin(), wanted.end(), [&](const FileTensor& each) {
      return each.names.front() == tied;
    });
    const StoredTensor* match =
        other == wanted.end() ? nullptr : matches[static_cast<size_t>(other - wanted.begin())];
    if (match != nullptr) {
      RETURN_IF_ERROR(CheckTied(file, tensor, *match));
      continue;
    }
    names.push_back(Printable(tensor.name));
  }
  return names;
}

// Returns advice if the file's scores are for another number of classes than the model's. Returns
// an empty string for other problems.
std::string Advice(const FileTensor& wanted, const StoredTensor& stored) {
  if (!wanted.scores_axis.has_value() || stored.shape.size() != wanted.shape.size()) return "";
  const uint64_t ours = wanted.shape[*wanted.scores_axis];
  const uint64_t theirs = stored.shape[*wanted.scores_axis];
  if (ours == theirs) return "";
  return absl::StrCat("; the file's model has ", Counted(theirs, "class"), ", but the job's has ",
                      ours, ": give the job's model ", theirs,
                      ", or replace the tensors of layer '", wanted.layer,
                      "' in the file by tensors for ", ours);
}

absl::Status CheckShapes(const std::vector<FileTensor>& wanted, const Matches& matches) {
  std::vector<std::string> wrong;
  std::string advice;
  bool only_scores = true;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const StoredTensor& stored = *matches[i];
    if (stored.shape == wanted[i].shape) continue;
    wrong.push_back(absl::StrCat("'", Printable(stored.name), "' is ", ShapeText(stored.shape),
                                 ", not ", ShapeText(wanted[i].shape)));
    advice = Advice(wanted[i], stored);
    only_scores = only_scores && !advice.empty();
  }
  if (wrong.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      Listed(wrong, "has the wrong shape", "have the wrong shape"), only_scores ? advice : ""));
}

}  // namespace

absl::StatusOr<Matches> MatchTensors(const SafetensorsReader& file,
                                     const std::vector<FileTensor>& wanted) {
  Matches matches = MatchNames(file, wanted);
  if (std::find(matches.begin(), matches.end(), nullptr) != matches.end()) {
    if (std::optional<Matches> by_order = MatchOrder(file, wanted)) matches = *std::move(by_order);
  }
  std::vector<std::string> missing;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (matches[i] == nullptr) missing.push_back(wanted[i].names.front());
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> left_over, LeftOver(file, wanted, matches));
  std::vector<std::string> wrong;
  if (!missing.empty()) wrong.push_back(Listed(missing, "is missing", "are missing"));
  if (!left_over.empty()) {
    wrong.push_back(
        Listed(left_over, "does not belong to the model", "do not belong to the model"));
  }
  if (!wrong.empty()) return absl::InvalidArgumentError(absl::StrJoin(wrong, "; "));
  RETURN_IF_ERROR(CheckShapes(wanted, matches));
  return matches;
}

}  // namespace leeway
