#include "launcher/inspect/array_pairs.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/status.h"

namespace leeway {
namespace {

// Words that describe the content of an array, but not the part of the data to which the array
// belongs.
constexpr absl::string_view kRoles[] = {
    "x",      "y",     "features", "feature", "labels", "label",   "data",    "target", "targets",
    "images", "image", "inputs",   "input",   "output", "outputs", "classes", "arr"};

// Returns the part of the data that a name contains, such as "train" for x_train, train_labels,
// Xtrain and trainY. Returns an empty string if the name contains no part.
std::string PartOf(const std::string& name) {
  std::vector<std::string> words =
      absl::StrSplit(absl::AsciiStrToLower(name), absl::ByAnyChar("_-. "), absl::SkipEmpty());
  words.erase(std::remove_if(words.begin(), words.end(),
                             [](const std::string& word) {
                               return std::find(std::begin(kRoles), std::end(kRoles), word) !=
                                      std::end(kRoles);
                             }),
              words.end());
  std::string part = absl::StrJoin(words, "_");
  for (const char* known : {"train", "test", "valid", "val"}) {
    for (const char* role : {"x", "y"}) {
      if (part == absl::StrCat(role, known) || part == absl::StrCat(known, role)) return known;
    }
  }
  return part;
}

std::string Describe(const std::vector<NamedArray>& arrays) {
  return absl::StrJoin(arrays, ", ", [](std::string* out, const NamedArray& array) {
    absl::StrAppend(out, array.name, " [", absl::StrJoin(array.shape, ", "), "]");
  });
}

absl::Status Refuse(absl::string_view what, const std::vector<NamedArray>& arrays) {
  return absl::InvalidArgumentError(
      absl::StrCat(what,
                   ". Features must have two or more dimensions, and labels one dimension of the "
                   "same length; the arrays are ",
                   Describe(arrays)));
}

struct NamedPair {
  std::string part;
  ArrayPair pair;
};

// Returns the labels with the same length and the same part of the data (such as train). With
// `by_length`, returns all labels of that length.
std::vector<size_t> LabelsFor(size_t features, const std::vector<NamedArray>& arrays,
                              bool by_length) {
  std::vector<size_t> labels;
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].shape.size() != 1 || arrays[i].shape[0] != arrays[features].shape[0]) continue;
    if (by_length || PartOf(arrays[i].name) == PartOf(arrays[features].name)) labels.push_back(i);
  }
  return labels;
}

absl::StatusOr<std::vector<NamedPair>> AllPairs(const std::vector<NamedArray>& arrays) {
  std::vector<NamedPair> pairs;
  const auto count = std::count_if(arrays.begin(), arrays.end(),
                                   [](const NamedArray& array) { return array.shape.size() > 1; });
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].shape.size() < 2) continue;
    std::vector<size_t> labels = LabelsFor(i, arrays, false);
    if (labels.empty() && count == 1) labels = LabelsFor(i, arrays, true);
    if (labels.size() != 1) {
      return Refuse(absl::StrCat(arrays[i].name, " has ",
                                 labels.empty() ? "no labels" : "several arrays of labels"),
                    arrays);
    }
    pairs.push_back({PartOf(arrays[i].name), {i, labels[0]}});
  }
  if (pairs.empty()) return Refuse("no array holds features", arrays);
  return pairs;
}

}  // namespace

absl::StatusOr<ArrayPairs> PairArrays(const std::vector<NamedArray>& arrays) {
  ASSIGN_OR_RETURN(const std::vector<NamedPair> pairs, AllPairs(arrays));
  if (pairs.size() == 1) return ArrayPairs{pairs[0].pair, std::nullopt};
  const auto find = [&](auto says) {
    return std::find_if(pairs.begin(), pairs.end(),
                        [&](const NamedPair& pair) { return says(pair.part); });
  };
  const auto has = [](const char* word) {
    return [word](const std::string& part) { return absl::StrContains(part, word); };
  };
  const auto train = find(has("train"));
  const auto test = find(has("test")) != pairs.end() ? find(has("test")) : find(has("val"));
  if (train == pairs.end() || test == pairs.end()) {
    return Refuse("the names do not say which arrays to train on", arrays);
  }
  return ArrayPairs{train->pair, test->pair};
}

}  // namespace leeway
