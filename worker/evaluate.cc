#include "worker/evaluate.h"

#include <algorithm>

#include "common/status.h"

namespace leeway {
namespace {

// The number of examples that are evaluated at a time. The number is large enough for full speed,
// and small enough that the activations of a CNN take only tens of megabytes.
constexpr size_t kBatch = 256;

}  // namespace

absl::StatusOr<v1::EvaluationMetrics> Evaluate(Model& model, const Dataset& test, v1::Loss loss,
                                               std::span<const float> weights,
                                               std::vector<float>* labels_found) {
  Model::Evaluation sum;
  Batch batch;
  for (size_t first = 0; first < test.size(); first += kBatch) {
    RETURN_IF_ERROR(test.CopyBatch(first, std::min(kBatch, test.size() - first), batch));
    ASSIGN_OR_RETURN(const Model::Evaluation part, model.Evaluate(batch, weights));
    sum.loss_sum += part.loss_sum;
    sum.labels += part.labels;
    sum.correct += part.correct;
    sum.in_top5 += part.in_top5;
    sum.examples += part.examples;
    sum.error.Add(part.error);
    if (labels_found == nullptr) continue;
    labels_found->insert(labels_found->end(), batch.labels.begin(), batch.labels.end());
  }
  v1::EvaluationMetrics metrics;
  const auto examples = static_cast<double>(std::max<uint64_t>(sum.examples, 1));
  metrics.set_examples(sum.examples);
  metrics.set_test_loss(sum.loss_sum / examples);
  const auto labels = static_cast<double>(std::max<uint64_t>(sum.labels, 1));
  if (loss != v1::LOSS_SQUARED) {
    metrics.set_test_accuracy(static_cast<double>(sum.correct) / labels);
  }
  if (model.tells_top5()) {
    metrics.set_test_top5_accuracy(static_cast<double>(sum.in_top5) / labels);
  }
  if (const auto mae = sum.error.mae()) metrics.set_test_mae(*mae);
  if (const auto r2 = sum.error.r2()) metrics.set_test_r2(*r2);
  return metrics;
}

}  // namespace leeway
