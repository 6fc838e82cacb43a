#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/layers/checks.h"
#include "worker/layers/registry.h"

namespace leeway {
namespace {

// Adds channels of zeros before and after the channels of x.
class PadChannelsLayer final : public Layer {
 public:
  PadChannelsLayer(const v1::PadChannels& config, const ImageShape& shape)
      : Layer(shape,
              {shape.height, shape.width, config.before() + shape.channels + config.after()}),
        before_(config.before()) {}

  void Forward(const Pass& pass, const float* x, float* y) const override {
    pass.backend.Fill(pass.batch * output().elements(), 0, y);
    pass.backend.CopyColumns({Pixels(pass), input().channels, input().channels, output().channels},
                             x, y + before_);
  }

  void Backward(const Pass& pass, const float* x, const float* y, float* dy,
                float* dx) const override {
    if (dx == nullptr) return;
    pass.backend.CopyColumns({Pixels(pass), input().channels, output().channels, input().channels},
                             dy + before_, dx);
  }

 private:
  size_t Pixels(const Pass& pass) const { return pass.batch * input().height * input().width; }

  const uint32_t before_;
};

}  // namespace

LayerOr MakePadChannels(const v1::Layer& config, const ImageShape& input) {
  const v1::PadChannels& pad = config.pad_channels();
  RETURN_IF_ERROR(CheckRange("before", pad.before(), 0, 65536));
  RETURN_IF_ERROR(CheckRange("after", pad.after(), 0, 65536));
  if (pad.before() + pad.after() == 0) {
    return absl::InvalidArgumentError("adds no channels: set before or after");
  }
  return std::make_unique<PadChannelsLayer>(pad, input);
}

}  // namespace leeway
