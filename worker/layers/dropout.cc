#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/philox.h"
#include "worker/layers/registry.h"

namespace leeway {
namespace {

// Srivastava et al. 2014, "Dropout", section 4, with the scaling in training. The mask is a pure
// function of (seed, step, rank, layer), so a step that is computed again drops the same.
class DropoutLayer final : public Layer {
 public:
  DropoutLayer(const ImageShape& shape, float rate) : Layer(shape, shape), rate_(rate) {}

  Placement placement() const override { return Placement::kInPlace; }
  // The mask.
  size_t saved(size_t batch) const override { return batch * input().elements(); }

  void Forward(const Pass& pass, const float* x, float* y) const override {
    const size_t count = pass.batch * input().elements();
    if (pass.training) {
      pass.backend.DropoutForward(count, rate_, Key(pass), x, pass.saved, y);
    } else if (x != y) {
      pass.backend.Copy(count, x, y);
    }
  }

  void Backward(const Pass& pass, const float* x, const float* y, float* dy,
                float* dx) const override {
    if (dx != nullptr) pass.backend.Multiply(pass.batch * input().elements(), dy, pass.saved, dx);
  }

 private:
  static DropoutKey Key(const Pass& pass) {
    RandomStream stream(pass.draw.seed, RandomPurpose::kDropout,
                        {pass.draw.step, pass.draw.rank, pass.layer});
    const uint64_t key = stream.NextU64();
    return {key, stream.NextU64()};
  }

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
