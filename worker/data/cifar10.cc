#include "worker/data/cifar10.h"

#include "common/status.h"
#include "worker/data/labels.h"

namespace leeway {
namespace {

constexpr size_t kPixels = 32 * 32;
constexpr size_t kColours = 3;
constexpr size_t kRecord = 1 + kColours * kPixels;
constexpr uint8_t kClasses = 10;

}  // namespace

absl::StatusOr<Examples> ParseCifar10(const DataFile& file, const LabelRule& rule) {
  const std::vector<uint8_t>& bytes = file.bytes;
  const auto bad = [&](size_t byte, absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(file.path, ": byte ", byte, ": ", what));
  };
  if (bytes.empty()) return bad(0, "the file is empty");
  if (bytes.size() % kRecord != 0) {
    return bad(bytes.size(), absl::StrCat("the file ends within a record: CIFAR-10 records have ",
                                          kRecord, " bytes"));
  }
  const size_t count = bytes.size() / kRecord;
  RETURN_IF_ERROR(CheckSize(count, kColours * kPixels, 1, file.path));
  std::vector<uint8_t> values(count * kColours * kPixels);
  Examples examples{{32, 32, kColours}, {}, {}};
  examples.labels.reserve(count);
  uint8_t* out = values.data();
  for (size_t start = 0; start < bytes.size(); start += kRecord) {
    if (bytes[start] >= kClasses) {
      return bad(start, absl::StrCat("label ", bytes[start], ": CIFAR-10 has classes 0 to 9"));
    }
    absl::StatusOr<float> label = CheckLabel(bytes[start], rule);
    if (!label.ok()) return bad(start, label.status().message());
    examples.labels.push_back(*label);
    const uint8_t* planes = &bytes[start + 1];
    for (size_t pixel = 0; pixel < kPixels; ++pixel) {
      for (size_t colour = 0; colour < kColours; ++colour)
        *out++ = planes[colour * kPixels + pixel];
    }
  }
  examples.values = std::move(values);
  return examples;
}

}  // namespace leeway
