#include "launcher/inspect/source_yaml.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace leeway {
namespace {

constexpr uint64_t kBatch = 32;
// The minimum number of batches in an epoch.
constexpr uint64_t kBatches = 8;
constexpr size_t kNumbersInLine = 10;

std::string YamlQuoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      absl::StrAppend(&quoted, "\\", std::string(1, c));
    } else if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) {
      absl::StrAppendFormat(&quoted, "\\x%02x", c);
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

template <typename Texts>
std::string Quoted(const Texts& texts) {
  return absl::StrCat("[",
                      absl::StrJoin(texts, ", ",
                                    [](std::string* out, const std::string& text) {
                                      out->append(YamlQuoted(text));
                                    }),
                      "]");
}

template <typename Names>
std::string Files(const char* type, const Names& names) {
  return absl::StrCat("type: ", type, ", files: ", Quoted(names));
}

std::string Csv(const v1::Csv& csv) {
  std::string text = Files("csv", csv.files());
  if (csv.separator() != ",") absl::StrAppend(&text, ", separator: ", YamlQuoted(csv.separator()));
  if (csv.skip_lines() > 0) absl::StrAppend(&text, ", skip_lines: ", csv.skip_lines());
  if (!csv.missing().empty()) absl::StrAppend(&text, ", missing: ", Quoted(csv.missing()));
  if (csv.has_label()) absl::StrAppend(&text, ", label: ", YamlQuoted(csv.label()));
  if (csv.label_column() != -1) absl::StrAppend(&text, ", label_column: ", csv.label_column());
  if (!csv.ignore().empty()) absl::StrAppend(&text, ", ignore: ", Quoted(csv.ignore()));
  for (int i = 0; i < csv.categories_size(); ++i) {
    absl::StrAppend(&text, i == 0 ? ",\n    categories: [" : ",\n      ",
                    "{column: ", YamlQuoted(csv.categories(i).column()),
                    ", values: ", Quoted(csv.categories(i).values()), "}");
  }
  return csv.categories().empty() ? text : text + "]";
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

// Writes a few numbers in each line.
std::string Numbers(const std::vector<double>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size(); ++i) {
    absl::StrAppendFormat(&text, "%s%.6g",
                          i == 0                    ? ""
                          : i % kNumbersInLine == 0 ? ",\n      "
                                                    : ", ",
                          numbers[i]);
  }
  return text;
}

}  // namespace

std::string DataYaml(const GuessedSource& guessed, const ValueStatistics& values,
                     uint64_t examples) {
  std::string text = absl::StrCat("data:\n  train: {", SourceText(guessed.source), "}\n");
  absl::StrAppend(&text, guessed.test.has_value()
                             ? absl::StrCat("  test: {", SourceText(*guessed.test), "}\n")
                             : "  holdout: 0.1\n");
  if (!values.mean.empty()) {
    // The deviation of a constant column is replaced by 1, so the column becomes 0.
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
