#include "worker/layers/tied_dense.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace leeway {
namespace {

// Computes scores with the weight of an embedding (Press and Wolf 2017, arXiv:1608.05859).
class TiedDenseLayer final : public Layer {
 public:
  TiedDenseLayer(const ImageShape& input, uint32_t units)
      : Layer(input, {input.height, input.width, units}) {}

  double flops() const override {
    return 2.0 * static_cast<double>(input().elements()) * output().channels;
  }

  void Forward(const Pass& pass, const float* x, float* y) const override {
    pass.backend.Gemm({.m = Rows(pass), .n = output().channels, .k = input().channels}, Op::kAsIs,
                      x, Op::kTransposed, pass.weights[0], false, y);
  }

  // Writes this layer's contribution to the weight's gradient. The embedding's Backward runs later
  // and adds the embedding's own.
  void Backward(const Pass& pass, const float* x, const float* y, float* dy,
                float* dx) const override {
    pass.backend.Gemm({.m = output().channels, .n = input().channels, .k = Rows(pass)},
                      Op::kTransposed, dy, Op::kAsIs, x, pass.accumulate, pass.contributions[0]);
    if (dx == nullptr) return;
    pass.backend.Gemm({.m = Rows(pass), .n = input().channels, .k = output().channels}, Op::kAsIs,
                      dy, Op::kAsIs, pass.weights[0], false, dx);
  }

 private:
  size_t Rows(const Pass& pass) const { return pass.batch * input().height * input().width; }
};

}  // namespace

LayerOr MakeTiedDense(const Layer& embedding, const ImageShape& input) {
  const TensorPlan weight = embedding.tensors().front();
  if (weight.shape[1] == input.channels) {
    return std::make_unique<TiedDenseLayer>(input, static_cast<uint32_t>(weight.shape[0]));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the input has ", input.channels, " channels, but each row of the embedding has ",
      weight.shape[1], " values: put a pointwise dense layer with ", weight.shape[1],
      " units before this layer"));
}

}  // namespace leeway
