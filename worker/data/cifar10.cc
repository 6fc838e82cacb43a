#include "worker/data/cifar10.h"

#include <array>
#include <span>
#include <utility>

#include "absl/functional/function_ref.h"
#include "common/status.h"
#include "worker/data/labels.h"

namespace leeway {
namespace {

constexpr size_t kPixels = 32 * 32;
constexpr size_t kColours = 3;
constexpr size_t kRecord = 1 + kColours * kPixels;
constexpr uint8_t kClasses = 10;

using Record = std::array<uint8_t, kRecord>;

absl::Status Bad(const DataFile& file, size_t byte, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(file.path, ": byte ", byte, ": ", what));
}

// Gives each record and its label to `take`, and leaves `file` at its start.
absl::Status ForEachRecord(DataFile& file, const LabelRule& rule,
                           absl::FunctionRef<void(const Record&, float)> take) {
  Record record;
  for (size_t start = 0;; start += kRecord) {
    ASSIGN_OR_RETURN(const size_t count, file.bytes->Read(record));
    if (count == 0 && start > 0) return file.bytes->Rewind();
    if (count == 0) return Bad(file, 0, "the file is empty");
    if (count < kRecord) {
      return Bad(file, start + count,
                 absl::StrCat("the file ends within a record: CIFAR-10 records have ", kRecord,
                              " bytes, the last one has ", count));
    }
    if (record[0] >= kClasses) {
      return Bad(file, start, absl::StrCat("label ", record[0], ": CIFAR-10 has classes 0 to 9"));
    }
    absl::StatusOr<float> label = CheckLabel(record[0], rule);
    if (!label.ok()) return Bad(file, start, label.status().message());
    take(record, *label);
  }
}

}  // namespace

absl::StatusOr<Examples> ParseCifar10(DataFile file, const LabelRule& rule) {
  // Once to check and count them, so that memory is taken once, for records that are sound.
  size_t count = 0;
  RETURN_IF_ERROR(ForEachRecord(file, rule, [&](const Record&, float) { ++count; }));
  RETURN_IF_ERROR(CheckSize(count, kColours * kPixels, 1, file.path));
  std::vector<uint8_t> values;
  values.reserve(count * kColours * kPixels);
  Examples examples{{32, 32, kColours}, {}, {}};
  examples.labels.reserve(count);
  RETURN_IF_ERROR(ForEachRecord(file, rule, [&](const Record& record, float label) {
    examples.labels.push_back(label);
    const uint8_t* planes = &record[1];
    for (size_t pixel = 0; pixel < kPixels; ++pixel) {
      for (size_t colour = 0; colour < kColours; ++colour)
        values.push_back(planes[colour * kPixels + pixel]);
    }
  }));
  examples.values = std::move(values);
  return examples;
}

}  // namespace leeway
