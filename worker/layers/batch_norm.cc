#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "worker/layers/registry.h"

namespace leeway {
namespace {

// Batch normalisation (Ioffe and Szegedy 2015) over the channels of an image or the features of a
// row. Training uses the batch's own mean and biased variance. Evaluation uses the running
// statistics, which are averaged tensors. The contribution to the running statistics is the batch's
// mean and unbiased variance. The running statistics move towards the contribution by `momentum`
// (common/update/averaging.h), on the servers or on a worker that keeps them itself.
class BatchNormLayer final : public Layer {
 public:
  BatchNormLayer(const v1::BatchNorm& config, const ImageShape& shape)
      : Layer(shape, shape),
        channels_(shape.channels),
        momentum_(config.momentum()),
        epsilon_(static_cast<float>(config.epsilon())),
        scale_(static_cast<float>(config.scale())) {}

  std::vector<TensorPlan> tensors() const override {
    constexpr v1::TensorKind kKind = v1::TENSOR_KIND_NORM;
    return {{.name = "weight", .shape = {channels_}, .kind = kKind, .constant = scale_},
            {.name = "bias", .shape = {channels_}, .kind = kKind},
            {.name = "running_mean",
             .shape = {channels_},
             .kind = kKind,
             .trained = false,
             .momentum = momentum_},
            {.name = "running_var",
             .shape = {channels_},
             .kind = kKind,
             .trained = false,
             .momentum = momentum_,
             .constant = 1}};
  }

  // The saved values are the batch's mean and 1 / standard deviation.
  size_t saved(size_t batch) const override { return 2 * channels_; }

  void Forward(const Pass& pass, const float* x, float* y) const override {
    const BatchNormWeights weights{pass.weights[0], pass.weights[1], pass.weights[2],
                                   pass.weights[3]};
    if (pass.training) {
      pass.backend.BatchNormForward(Options(pass), weights, x, pass.saved, pass.contributions[2],
                                    pass.contributions[3], y);
    } else {
      pass.backend.BatchNormInference(Options(pass), weights, x, y);
    }
  }

  void Backward(const Pass& pass, const float* x, const float* y, float* dy,
                float* dx) const override {
    pass.backend.BatchNormBackward(Options(pass), pass.weights[0], x, pass.saved, dy,
                                   pass.contributions[0], pass.contributions[1], dx);
  }

 private:
  BatchNormOptions Options(const Pass& pass) const {
    return {pass.batch * (input().elements() / channels_), channels_, epsilon_};
  }

  const size_t channels_;
  const double momentum_;
  const float epsilon_;
  const float scale_;
};

}  // namespace

LayerOr MakeBatchNorm(const v1::Layer& config, const ImageShape& input) {
  const v1::BatchNorm& norm = config.batch_norm();
  if (!(norm.momentum() > 0 && norm.momentum() <= 1 && norm.epsilon() > 0 && norm.epsilon() <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat("momentum ", norm.momentum(), " and epsilon ",
                                                   norm.epsilon(), " must be in (0, 1]"));
  }
  if (!(norm.scale() >= 0 && norm.scale() <= 1000)) {
    return absl::InvalidArgumentError(
        absl::StrCat("scale ", norm.scale(), " must be from 0 to 1000"));
  }
  return std::make_unique<BatchNormLayer>(norm, input);
}

}  // namespace leeway
