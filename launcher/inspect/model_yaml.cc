#include "launcher/inspect/model_yaml.h"

#include "absl/strings/str_cat.h"

namespace leeway {
namespace {

// The smallest side of an image for a model with convolutions. Two poolings make the image smaller,
// so it must not be too small.
constexpr uint32_t kConvolvedMin = 8;

constexpr char kConvolutions[] =
    "    - conv2d: {filters: 16, kernel: 3, padding: 1}\n"
    "    - relu: {}\n"
    "    - max_pool: {size: 2}\n"
    "    - conv2d: {filters: 32, kernel: 3, padding: 1}\n"
    "    - relu: {}\n"
    "    - max_pool: {size: 2}\n"
    "    - flatten: {}\n";

std::string WithLoss(const std::string& layers, const char* loss) {
  return absl::StrCat("model:\n  layers:\n", layers, "  loss: ", loss, "\n");
}

}  // namespace

std::string ModelYaml(const ImageShape& shape, const LabelStatistics& labels) {
  const bool numbers = labels.counts.empty(), signs = !numbers && labels.least == -1;
  const char* loss = numbers ? "squared" : signs ? "logistic" : "softmax_cross_entropy";
  // Classes are numbered from 0, even if the lowest classes do not occur in the data.
  const auto classes = static_cast<uint64_t>(labels.largest) + 1;
  const uint64_t outputs = numbers || signs ? 1 : classes;
  if (shape.height >= kConvolvedMin && shape.width >= kConvolvedMin) {
    return WithLoss(absl::StrCat(kConvolutions, "    - dense: {units: ", outputs, "}\n"), loss);
  }
  return WithLoss(absl::StrCat("    - mlp: {hidden: [64], outputs: ", outputs, "}\n"), loss);
}

std::string TextModelYaml(uint64_t vocabulary) {
  return WithLoss(absl::StrCat("    - gpt: {vocabulary: ", vocabulary, "}\n"),
                  "softmax_cross_entropy");
}

}  // namespace leeway
