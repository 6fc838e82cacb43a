// The files of a data source, as a stranger may have written them. The first byte selects the
// format.
#include <cmath>
#include <memory>
#include <variant>

#include "tests/fuzz/fuzz_input.h"
#include "tests/worker/data/memory_stream.h"
#include "worker/data/cifar.h"
#include "worker/data/csv.h"
#include "worker/data/gunzip.h"
#include "worker/data/idx.h"
#include "worker/data/libsvm.h"
#include "worker/data/text.h"

namespace leeway::data {
namespace {

constexpr uint64_t kUnpackedMax = 1 << 16;
// For libsvm, whose lines become rows of this number of floats at most.
constexpr uint32_t kFeaturesMax = 64;

DataFile File(const char* name, std::span<const uint8_t> bytes) {
  return {name, std::make_unique<MemoryStream>(std::vector<uint8_t>(bytes.begin(), bytes.end()))};
}

void PromiseNumbers(const Examples& examples) {
  const auto* floats = std::get_if<std::vector<float>>(&examples.values);
  if (floats == nullptr) return;
  for (const float value : *floats) Promise(!std::isinf(value), "features are finite or missing");
}

// What every parser promises.
void PromiseExamples(const absl::StatusOr<Examples>& examples, const LabelRule& rule) {
  if (!examples.ok()) {
    Promise(
        absl::IsInvalidArgument(examples.status()) || absl::IsResourceExhausted(examples.status()),
        "a bad file is INVALID_ARGUMENT: " + examples.status().ToString());
    Promise(examples.status().message().find("file") != std::string::npos, "the file is named");
    return;
  }
  const size_t values = std::visit([](const auto& v) { return v.size(); }, examples->values);
  Promise(values == examples->size() * examples->shape.elements(), "each label has its values");
  Promise(examples->size() > 0, "a source has examples");
  PromiseNumbers(*examples);
  for (const float label : examples->labels) {
    Promise(std::isfinite(label), "labels are finite");
    if (rule.loss == v1::LOSS_SQUARED) continue;
    Promise(label >= 0 && label == std::floor(label), "a class is a number from 0");
    if (rule.loss == v1::LOSS_LOGISTIC) Promise(label <= 1, "logistic labels are 0 and 1");
    if (rule.classes > 0) Promise(label < rule.classes, "a class is one of the model's");
  }
}

LabelRule RuleOf(FuzzInput& input) {
  constexpr v1::Loss kLosses[] = {v1::LOSS_SOFTMAX_CROSS_ENTROPY, v1::LOSS_LOGISTIC,
                                  v1::LOSS_SQUARED};
  const v1::Loss loss = kLosses[input.Below(3)];
  return {loss, loss == v1::LOSS_SOFTMAX_CROSS_ENTROPY ? input.Below(12) : 0};
}

void Idx(FuzzInput& input) {
  const LabelRule rule = RuleOf(input);
  const auto labels = input.Take(input.Byte());
  PromiseExamples(ParseIdx(File("file-images", input.Rest()), File("file-labels", labels), rule),
                  rule);
}

void Csv(FuzzInput& input) {
  const LabelRule rule = RuleOf(input);
  v1::Csv options;
  options.set_label_column(static_cast<int8_t>(input.Byte()));
  const uint8_t flags = input.Byte();
  constexpr const char* kSeparators[] = {",", " ", ";", "\t"};
  options.set_separator(kSeparators[flags & 3]);
  options.set_skip_lines(flags >> 2 & 1);
  if (flags & 8) options.add_missing("?");
  if (flags & 16) options.set_label_above(0.5);
  if (flags & 32) {
    options.add_shape(2);
    options.add_shape(1 + input.Below(3));
  }
  if (flags & 64) {
    v1::Categories& categories = *options.add_categories();
    categories.set_column(std::to_string(input.Below(4)));
    for (const char* value : {"0", "a", "b c"}) categories.add_values(value);
    if (input.Byte() & 1) categories.set_encoding(v1::CATEGORY_ENCODING_NUMBER);
  }
  if (flags & 128) {
    options.set_label("x");
    options.add_ignore("");
  }
  PromiseExamples(ParseCsv(File("file.csv", input.Rest()), options, rule), rule);
}

void Libsvm(FuzzInput& input) {
  const LabelRule rule = RuleOf(input);
  v1::Libsvm options;
  options.set_features(input.Below(kFeaturesMax + 1));
  const auto examples = ParseLibsvm(File("file.svm", input.Rest()), options, rule);
  if (options.features() > 0) PromiseExamples(examples, rule);
}

// A few bytes, repeated, are records of 3073 or 3074 bytes.
void Cifar(FuzzInput& input) {
  const LabelRule rule = RuleOf(input);
  const bool hundred = (input.Byte() & 1) != 0;
  const size_t wanted = input.Below(3) * size_t{hundred ? 3074u : 3073u} + input.Byte() % 2;
  const auto pattern = input.Rest();
  std::vector<uint8_t> bytes(pattern.empty() ? 0 : wanted);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = pattern[i % pattern.size()];
  PromiseExamples(hundred ? ParseCifar100(File("file.bin", bytes), v1::CIFAR100_LABELS_FINE, rule)
                          : ParseCifar10(File("file.bin", bytes), rule),
                  rule);
}

void Gzip(FuzzInput& input) {
  // Supplies the first two bytes of a gzip file, which are always the same.
  std::vector<uint8_t> packed = {0x1f, 0x8b};
  const auto rest = input.Rest();
  packed.insert(packed.end(), rest.begin(), rest.end());
  GunzipStream stream(std::make_unique<MemoryStream>(packed), "file.gz", kUnpackedMax);
  const auto unpacked = ReadAll(stream);
  if (unpacked.ok()) {
    Promise(unpacked->size() <= kUnpackedMax, "at most max_bytes are unpacked");
  } else {
    Promise(absl::IsDataLoss(unpacked.status()) || absl::IsResourceExhausted(unpacked.status()),
            "damaged gzip is DATA_LOSS: " + unpacked.status().ToString());
  }
}

void Text(FuzzInput& input) {
  const DataFile file = File("file.txt", input.Rest());
  Lines lines(*file.bytes, file.path);
  absl::string_view line;
  while (lines.Next(line).value()) {
    Promise(line.find('\n') == absl::string_view::npos, "a line has no end of line in it");
    if (const auto number = ParseNumber(line); number.ok()) {
      Promise(std::isfinite(*number), "a number is finite");
    }
    if (const auto number = ParseFloat(line); number.ok()) {
      Promise(std::isfinite(*number), "a float is finite");
    }
    Promise(Quote(line).size() < 400, "a quoted text is not too long");
  }
}

}  // namespace
FUZZ_TARGET(data) {
  constexpr void (*kFormats[])(FuzzInput&) = {Idx, Csv, Libsvm, Cifar, Gzip, Text};
  kFormats[input.Below(6)](input);
}

}  // namespace leeway::data
