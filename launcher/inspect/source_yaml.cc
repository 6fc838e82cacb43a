#include "launcher/inspect/source_yaml.h"

#include <algorithm>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace leeway {
namespace {

constexpr uint64_t kBatch = 32;
// Batches of an epoch at least.
constexpr uint64_t kBatches = 8;

std::string YamlQuoted(const std::string& text) {
  return absl::StrCat("\"", absl::Utf8SafeCEscape(text), "\"");
}

template <typename Names>
std::string Files(const char* type, const Names& names) {
  return absl::StrCat("type: ", type, ", files: [",
                      absl::StrJoin(names, ", ",
                                    [](std::string* out, const std::string& name) {
                                      out->append(YamlQuoted(name));
                                    }),
                      "]");
}

std::string Csv(const v1::Csv& csv) {
  std::string text = Files("csv", csv.files());
  if (csv.separator() != ",") absl::StrAppend(&text, ", separator: ", YamlQuoted(csv.separator()));
  if (csv.skip_lines() > 0) absl::StrAppend(&text, ", skip_lines: ", csv.skip_lines());
  if (csv.has_missing()) absl::StrAppend(&text, ", missing: ", YamlQuoted(csv.missing()));
  if (csv.label_column() != -1) absl::StrAppend(&text, ", label_column: ", csv.label_column());
  return text;
}

std::string Numpy(const v1::Numpy& numpy) {
  std::string text = absl::StrCat("type: numpy, features: ", YamlQuoted(numpy.features()),
                                  ", labels: ", YamlQuoted(numpy.labels()));
  if (numpy.has_features_array()) {
    absl::StrAppend(&text, ", features_array: ", YamlQuoted(numpy.features_array()));
  }
  if (numpy.has_labels_array()) {
    absl::StrAppend(&text, ", labels_array: ", YamlQuoted(numpy.labels_array()));
  }
  return text;
}

std::string SourceText(const v1::Source& source) {
  switch (source.type_case()) {
    case v1::Source::kIdx:
      return absl::StrCat("type: idx, images: ", YamlQuoted(source.idx().images()),
                          ", labels: ", YamlQuoted(source.idx().labels()));
    case v1::Source::kCifar10:
      return Files("cifar10", source.cifar10().files());
    case v1::Source::kCifar100:
      return Files("cifar100", source.cifar100().files());
    case v1::Source::kCsv:
      return Csv(source.csv());
    case v1::Source::kLibsvm:
      return absl::StrCat(Files("libsvm", source.libsvm().files()),
                          ", features: ", source.libsvm().features());
    case v1::Source::kNumpy:
      return Numpy(source.numpy());
    case v1::Source::kText:
      return absl::StrCat(Files("text", source.text().files()),
                          ", context: ", source.text().context(),
                          source.text().unit() == v1::TEXT_UNIT_BYTES ? ", unit: bytes" : "");
    case v1::Source::kImageFolder:
      return absl::StrCat(
          "type: image_folder, folder: ", YamlQuoted(source.image_folder().folder()),
          ", height: ", source.image_folder().height(), ", width: ", source.image_folder().width());
    default:
      return "";
  }
}

std::string Numbers(const std::vector<double>& numbers) {
  return absl::StrJoin(numbers, ", ", [](std::string* out, double number) {
    absl::StrAppendFormat(out, "%.6g", number);
  });
}

}  // namespace

std::string DataYaml(const v1::Source& source, const ValueStatistics& values, uint64_t examples) {
  std::string text = absl::StrCat("data:\n  train: {", SourceText(source), "}\n  holdout: 0.1\n");
  if (!values.mean.empty()) {
    // A column that is the same everywhere becomes 0.
    std::vector<double> deviation = values.deviation;
    for (double& each : deviation) each = each > 0 ? each : 1;
    absl::StrAppend(&text, "  normalize:\n    mean: [", Numbers(values.mean), "]\n    std: [",
                    Numbers(deviation), "]\n");
  }
  absl::StrAppend(&text, "  batch_size: ", std::clamp<uint64_t>(examples / kBatches, 1, kBatch),
                  "\n");
  return text;
}

}  // namespace leeway
