#include "worker/layers/custom.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/plugins/guarded.h"
#include "common/status.h"
#include "worker/layers/limits.h"

namespace leeway {
namespace {

// A plugin's layer and its properties, which are read once.
struct MadeLayer {
  std::string name;
  std::unique_ptr<const plugin::Layer> layer;
  plugin::Shape output;
  std::vector<plugin::Tensor> tensors;
};

TensorPlan PlanOf(const plugin::Tensor& tensor) {
  TensorPlan plan{.name = tensor.name, .shape = tensor.shape};
  if (tensor.kind == plugin::TensorKind::kBias) plan.kind = v1::TENSOR_KIND_BIAS;
  plan.fan_in = tensor.start.fan_in;
  plan.fan_out = tensor.start.fan_out;
  switch (tensor.start.kind) {
    case plugin::Start::Kind::kConstant:
      plan.constant = static_cast<float>(tensor.start.value);
      break;
    case plugin::Start::Kind::kNormal:
      plan.initializer = v1::INITIALIZER_NORMAL;
      plan.deviation = tensor.start.value;
      break;
    case plugin::Start::Kind::kHeNormal:
      plan.initializer = v1::INITIALIZER_HE_NORMAL;
      break;
    case plugin::Start::Kind::kGlorotUniform:
      plan.initializer = v1::INITIALIZER_GLOROT_UNIFORM;
      break;
  }
  return plan;
}

class CustomLayer final : public Layer {
 public:
  CustomLayer(MadeLayer made, const ImageShape& input)
      : Layer(input, {made.output.height, made.output.width, made.output.channels}),
        name_(std::move(made.name)),
        layer_(std::move(made.layer)) {
    for (const plugin::Tensor& tensor : made.tensors) tensors_.push_back(PlanOf(tensor));
  }

  std::vector<TensorPlan> tensors() const override { return tensors_; }
  // Returns true because the plugin's backward pass may read the output.
  bool reads_output() const override { return true; }
  bool needs_host_memory() const override { return true; }
  size_t saved(size_t batch) const override { return layer_->saved(batch); }
  size_t scratch(const Backend& backend, size_t batch) const override {
    return layer_->scratch(batch);
  }
  double flops() const override { return layer_->flops(); }

  void Forward(const Pass& pass, const float* x, float* y) const override {
    Call(pass, "forward pass", [&] { layer_->Forward(PassOf(pass, {}), x, y); });
  }

  void Backward(const Pass& pass, const float* x, const float* y, float* dy,
                float* dx) const override {
    Call(pass, "backward pass",
         [&] { layer_->Backward(PassOf(pass, pass.contributions), x, y, dy, dx); });
  }

 private:
  static plugin::Pass PassOf(const Pass& pass, std::span<float* const> gradients) {
    return {.batch = pass.batch,
            .training = pass.training,
            .weights = pass.weights,
            .gradients = gradients,
            .saved = pass.saved,
            .scratch = pass.scratch};
  }

  template <typename Work>
  void Call(const Pass& pass, absl::string_view what, Work&& work) const {
    const absl::Status status = Guarded(work);
    if (status.ok() || pass.failure == nullptr) return;
    *pass.failure = Annotate(status, absl::StrCat("the plugin's layer '", name_, "', ", what));
  }

  const std::string name_;
  const std::unique_ptr<const plugin::Layer> layer_;
  std::vector<TensorPlan> tensors_;
};

bool IsTensorName(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
  });
}

bool IsWithinLimit(const std::vector<uint64_t>& shape) {
  uint64_t elements = 1;
  for (const uint64_t side : shape) {
    if (side == 0 || side > kMaxModelElements / elements) return false;
    elements *= side;
  }
  return !shape.empty();
}

absl::Status CheckTensors(const std::vector<plugin::Tensor>& tensors) {
  std::set<std::string> names;
  for (const plugin::Tensor& tensor : tensors) {
    const auto refuse = [&](absl::string_view why) {
      return absl::FailedPreconditionError(
          absl::StrCat("its tensor ", names.size(), " '", Printable(tensor.name), "' ", why));
    };
    if (!IsTensorName(tensor.name)) return refuse("needs a name of letters, digits, '_' and '-'");
    if (!IsWithinLimit(tensor.shape)) return refuse("has a shape that is empty or too large");
    if (!std::isfinite(tensor.start.value))
      return refuse("has an initial value that is not finite");
    if (!names.insert(tensor.name).second) return refuse("has the same name as another tensor");
  }
  return absl::OkStatus();
}

absl::StatusOr<MadeLayer> Make(const ChosenPlugin<plugin::LayerSpec>& chosen,
                               const ImageShape& input) {
  MadeLayer made;
  made.name = chosen.spec->name;
  RETURN_IF_ERROR(Guarded([&] {
    made.layer = chosen.spec->make(chosen.options, {input.height, input.width, input.channels});
    if (made.layer == nullptr) return;
    made.output = made.layer->output();
    made.tensors = made.layer->tensors();
  }));
  if (made.layer == nullptr) {
    return absl::FailedPreconditionError("the plugin's `make` returned no layer");
  }
  RETURN_IF_ERROR(CheckTensors(made.tensors));
  return made;
}

}  // namespace

LayerOr MakeCustomLayer(const v1::Custom& custom, const ImageShape& input, const Plugins& plugins) {
  ASSIGN_OR_RETURN(const auto chosen, plugins.Layer(custom));
  auto made = Make(chosen, input);
  if (made.ok()) return std::make_unique<CustomLayer>(*std::move(made), input);
  return Annotate(made.status(), absl::StrCat("the plugin's layer '", custom.name(), "'"));
}

}  // namespace leeway
