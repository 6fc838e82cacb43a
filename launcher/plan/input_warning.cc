#include "launcher/plan/input_warning.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status.h"
#include "launcher/inspect/statistics.h"
#include "worker/data/text.h"

namespace leeway {
namespace {

constexpr size_t kSampled = 1000;
// The largest mean or deviation without a warning. He initialisation assumes inputs with a mean
// near 0 and a deviation near 1.
constexpr double kLarge = 10;

bool NormalizesFirst(const v1::Model& model) {
  for (const v1::Layer& layer : model.layers()) {
    if (layer.has_flatten()) continue;
    return layer.has_batch_norm() || layer.has_layer_norm() || layer.has_group_norm();
  }
  return false;
}

absl::StatusOr<ValueStatistics> SampleOf(const Dataset& data) {
  const ImageShape& shape = data.shape();
  ValueSums sums(shape.flat() ? shape.elements() : shape.channels);
  Batch batch;
  const size_t every = std::max<size_t>(data.size() / kSampled, 1);
  for (size_t i = 0; i < data.size(); i += every) {
    RETURN_IF_ERROR(data.CopyBatch(i, 1, batch));
    sums.Add(batch.features);
  }
  return sums.Statistics();
}

}  // namespace

absl::StatusOr<std::string> InputWarning(const v1::TrainingJob& job, const Dataset& data) {
  // Do not warn of decoded pictures, because decoding scales them to 0..1.
  if (data.labels_each() > 1 || data.decodes() || NormalizesFirst(job.model()))
    return std::string();
  ASSIGN_OR_RETURN(const ValueStatistics values, SampleOf(data));
  for (size_t i = 0; i < values.mean.size(); ++i) {
    if (std::abs(values.mean[i]) <= kLarge && values.deviation[i] <= kLarge) continue;
    const bool named = i < data.columns().size();
    return absl::StrCat(
        data.shape().flat() ? "feature " : "channel ", i,
        named ? absl::StrCat(" (", Quote(data.columns()[i]), ")") : "",
        absl::StrFormat(" of the training data has a mean of %.3g and a deviation of %.3g",
                        values.mean[i], values.deviation[i]),
        ". The initial weights of layers suit inputs with a mean of 0 and a deviation of 1, and "
        "other inputs train badly: give data.normalize (`leeway data FILE` prints it)");
  }
  return std::string();
}

}  // namespace leeway
