#include "worker/data/cifar.h"

#include <span>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/status.h"
#include "worker/data/labels.h"

namespace leeway {
namespace {

constexpr size_t kPixels = 32 * 32;
constexpr size_t kColours = 3;

// The format of a record, which begins with label bytes.
struct Format {
  const char* name;
  // The number of classes of each label byte.
  std::vector<uint32_t> labels;
  // The index of the label byte that the job uses.
  size_t chosen;

  size_t record() const { return labels.size() + kColours * kPixels; }
};

using Record = std::span<const uint8_t>;

absl::Status CheckLabelBytes(const DataFile& file, const Format& format, size_t start,
                             Record record) {
  for (size_t i = 0; i < format.labels.size(); ++i) {
    if (record[i] < format.labels[i]) continue;
    return BadByte(file, start + i,
                   absl::StrCat("label ", record[i], ": ", format.name, " has classes 0 to ",
                                format.labels[i] - 1));
  }
  return absl::OkStatus();
}

// Passes each record's pixels and label to `take`, and rewinds `file` afterwards.
absl::Status ForEachRecord(DataFile& file, const Format& format, const LabelRule& rule,
                           absl::FunctionRef<void(Record, float)> take) {
  std::vector<uint8_t> record(format.record());
  for (size_t start = 0;; start += record.size()) {
    ASSIGN_OR_RETURN(const size_t count, file.bytes->Read(record));
    if (count == 0 && start > 0) return file.bytes->Rewind();
    if (count == 0) return BadByte(file, 0, "the file is empty");
    if (count < record.size()) {
      return BadByte(file, start + count,
                     absl::StrCat("the file ends within a record: ", format.name, " records have ",
                                  record.size(), " bytes, but the last record has ", count));
    }
    RETURN_IF_ERROR(CheckLabelBytes(file, format, start, record));
    absl::StatusOr<float> label = CheckLabel(record[format.chosen], rule);
    if (!label.ok()) return BadByte(file, start + format.chosen, label.status().message());
    take(Record(record).subspan(format.labels.size()), *label);
  }
}

absl::StatusOr<Examples> Parse(DataFile file, const Format& format, const LabelRule& rule) {
  // The first pass checks and counts the records, so that memory is allocated once, and only for
  // sound records.
  size_t count = 0;
  RETURN_IF_ERROR(ForEachRecord(file, format, rule, [&](Record, float) { ++count; }));
  RETURN_IF_ERROR(CheckSize(count, kColours * kPixels, 1, file.path));
  std::vector<uint8_t> values;
  values.reserve(count * kColours * kPixels);
  Examples examples{{32, 32, kColours}, {}, {}};
  examples.labels.reserve(count);
  RETURN_IF_ERROR(ForEachRecord(file, format, rule, [&](Record planes, float label) {
    examples.labels.push_back(label);
    for (size_t pixel = 0; pixel < kPixels; ++pixel) {
      for (size_t colour = 0; colour < kColours; ++colour)
        values.push_back(planes[colour * kPixels + pixel]);
    }
  }));
  examples.values = std::move(values);
  return examples;
}

}  // namespace

absl::StatusOr<Examples> ParseCifar10(DataFile file, const LabelRule& rule) {
  return Parse(std::move(file), {"CIFAR-10", {10}, 0}, rule);
}

absl::StatusOr<Examples> ParseCifar100(DataFile file, v1::Cifar100Labels labels,
                                       const LabelRule& rule) {
  const size_t chosen = labels == v1::CIFAR100_LABELS_COARSE ? 0 : 1;
  return Parse(std::move(file), {"CIFAR-100", {20, 100}, chosen}, rule);
}

}  // namespace leeway
