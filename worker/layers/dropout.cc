#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "worker/layers/draws.h"
#include "worker/layers/registry.h"

namespace leeway {
namespace {

// Dropout (Srivastava et al. 2014, section 4). Values are scaled in training, so evaluation changes
// nothing.
class DropoutLayer final : public Layer {
 public:
  DropoutLayer(const ImageShape& shape, float rate) : Layer(shape, shape), rate_(rate) {}

  Placement placement() const override { return Placement::kInPlace; }
  // The saved values are the mask.
  size_t saved(size_t batch) const override { return batch * input().elements(); }

  void Forward(const Pass& pass, const float* x, float* y) const override {
    const size_t count = pass.batch * input().elements();
    if (pass.training) {
      pass.backend.DropoutForward(count, rate_, DropoutKeyOf(pass), x, pass.saved, y);
    } else if (x != y) {
      pass.backend.Copy(count, x, y);
    }
  }

  void Backward(const Pass& pass, const float* x, const float* y, float* dy,
                float* dx) const override {
    if (dx != nullptr) pass.backend.Multiply(pass.batch * input().elements(), dy, pass.saved, dx);
  }

 private:
  const float rate_;
};

}  // namespace

LayerOr MakeDropout(const v1::Layer& config, const ImageShape& input) {
  const auto rate = static_cast<float>(config.dropout().rate());
  if (!(rate >= 0 && rate < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("rate ", config.dropout().rate(), " is not in [0, 1)"));
  }
  return std::make_unique<DropoutLayer>(input, rate);
}

}  // namespace leeway
