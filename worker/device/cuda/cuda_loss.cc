// Computes the loss of each example, and then the sum of all losses in two passes.
#include <algorithm>

#include "worker/device/cuda/cuda_backend.h"
#include "worker/device/cuda/kernels/loss.h"
#include "worker/device/cuda/launch.h"
#include "worker/device/cuda/sums.h"

namespace leeway::cuda {
namespace {

// The number of losses that one thread adds up.
constexpr size_t kGroup = 64;

size_t Parts(size_t count, size_t each) { return (count + each - 1) / each; }

}  // namespace

template <typename Loss>
void CudaBackend::SumLosses(const char* what, size_t batch, const Loss& loss, LossSum* sum) {
  // The losses come first, and the sums of the groups follow.
  const size_t room = kPartialsBytes / sizeof(LossSum) / 2;
  auto* const losses = static_cast<LossSum*>(partials_);
  LossSum* const groups = losses + room;
  const size_t each = std::max<size_t>(1, Parts(batch, room));
  const size_t count = Parts(batch, each);
  Launch(queue_, what, count, ExampleLosses<Loss>{batch, each, loss, losses});
  Launch(queue_, what, Parts(count, kGroup), LossGroups{count, kGroup, losses, groups});
  const size_t left = Parts(count, kGroup);
  Launch(queue_, what, 1, LossGroups{left, left, groups, sum});
}

void CudaBackend::SoftmaxCrossEntropy(const SoftmaxLossShape& shape, const float* scores,
                                      const float* labels, LossSum* sum, float* dscores) {
  const float share = 1.0f / static_cast<float>(shape.rows);
  SumLosses("SoftmaxCrossEntropy", shape.rows,
            CrossEntropyLoss{shape.classes, share, shape.smoothing, scores, labels, dscores}, sum);
}

void CudaBackend::Logistic(size_t batch, const float* scores, const float* labels, LossSum* sum,
                           float* dscores) {
  SumLosses("Logistic", batch, LogisticLoss{batch, scores, labels, dscores}, sum);
}

void CudaBackend::Squared(size_t batch, const float* scores, const float* labels, LossSum* sum,
                          float* dscores) {
  SumLosses("Squared", batch, SquaredLoss{batch, scores, labels, dscores}, sum);
}

}  // namespace leeway::cuda
