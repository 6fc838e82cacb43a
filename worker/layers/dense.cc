#include <algorithm>
#include <memory>

#include "common/status.h"
#include "worker/layers/checks.h"
#include "worker/layers/registry.h"

namespace leeway {
namespace {

// The size of a panel. A large layer is divided into panels of whole rows of W, of about this size.
// Over a slow link, no computation hides the transfers of the first panel's gradient and of the
// last panel's weights, so panels should be short. But the product of each panel packs dy again.
// This takes noticeable time if a panel has fewer than a few hundred rows.
constexpr size_t kPanelBytes = 2 << 20;
constexpr size_t kPanelRowsMin = 128;

// Returns the number of rows of each panel. The last panel may have fewer.
size_t PanelRows(size_t inputs, size_t units) {
  const size_t wanted = std::max(kPanelRowsMin, kPanelBytes / (units * sizeof(float)));
  const size_t panels = std::max<size_t>(1, inputs / wanted);
  return (inputs + panels - 1) / panels;
}

// Computes y = x W + b, with W [inputs x units], for an example or, with `pointwise`, for each of
// its pixels. A panel is some rows of W; the last panel also has b. y is the sum of the panels'
// products, and each panel computes its own columns of dx.
class DenseLayer final : public Layer {
 public:
  DenseLayer(const v1::Dense& config, const ImageShape& input)
      : Layer(input, OutputOf(config, input)),
        rows_(config.pointwise() ? size_t{input.height} * input.width : 1),
        inputs_(input.elements() / rows_),
        units_(config.units()),
        panel_rows_(PanelRows(inputs_, units_)),
        bias_(config.bias()),
        initializer_(config.initializer()),
        deviation_(config.deviation()) {}

  std::vector<TensorPlan> tensors() const override {
    std::vector<TensorPlan> plans = {{.name = "weight",
                                      .shape = {inputs_, units_},
                                      .initializer = initializer_,
                                      .fan_in = inputs_,
                                      .fan_out = units_,
                                      .deviation = deviation_}};
    if (bias_) plans.push_back({.name = "bias", .shape = {units_}, .kind = v1::TENSOR_KIND_BIAS});
    return plans;
  }

  std::vector<uint64_t> panel_cuts() const override {
    std::vector<uint64_t> cuts;
    for (size_t row = panel_rows_; row < inputs_; row += panel_rows_) cuts.push_back(row * units_);
    return cuts;
  }

  double flops() const override {
    return 2.0 * static_cast<double>(input().elements()) * static_cast<double>(units_);
  }

  void Forward(const Pass& pass, const float* x, float* y) const override {
    const Panel panel = PanelOf(pass);
    const bool whole = panel.rows == inputs_;
    const size_t rows = pass.batch * rows_;
    if (bias_ && whole) pass.backend.FillRows(rows, units_, pass.weights[1], y);
    pass.backend.Gemm({.m = rows, .n = units_, .k = panel.rows, .a_stride = inputs_}, Op::kAsIs,
                      x + panel.row, Op::kAsIs, pass.weights[0] + panel.row * units_,
                      whole ? bias_ : panel.row > 0, y);
    // The bias arrives with the last panel.
    if (bias_ && !whole && panel.last) {
      pass.backend.AddRows(rows, units_, pass.weights[1], y);
    }
  }

  void Backward(const Pass& pass, const float* x, const float* y, float* dy,
                float* dx) const override {
    const Panel panel = PanelOf(pass);
    const size_t first = panel.row * units_;
    const size_t rows = pass.batch * rows_;
    pass.backend.Gemm({.m = panel.rows, .n = units_, .k = rows, .a_stride = inputs_},
                      Op::kTransposed, x + panel.row, Op::kAsIs, dy, false,
                      pass.contributions[0] + first);
    if (bias_ && panel.last) pass.backend.SumRows(rows, units_, dy, pass.contributions[1]);
    if (dx == nullptr) return;
    pass.backend.Gemm({.m = rows, .n = panel.rows, .k = units_, .c_stride = inputs_}, Op::kAsIs, dy,
                      Op::kTransposed, pass.weights[0] + first, false, dx + panel.row);
  }

 private:
  static ImageShape OutputOf(const v1::Dense& config, const ImageShape& input) {
    if (!config.pointwise()) return {1, 1, config.units()};
    return {input.height, input.width, config.units()};
  }

  // The rows [row, row + rows) of W.
  struct Panel {
    size_t row = 0;
    size_t rows = 0;
    bool last = false;
  };
  Panel PanelOf(const Pass& pass) const {
    if (pass.panel == Pass::kWhole) return {0, inputs_, true};
    const size_t row = pass.panel * panel_rows_;
    const size_t rows = std::min(panel_rows_, inputs_ - row);
    return {row, rows, row + rows == inputs_};
  }

  // The number of rows of x for one example.
  const size_t rows_;
  const size_t inputs_;
  const size_t units_;
  const size_t panel_rows_;
  const bool bias_;
  const v1::Initializer initializer_;
  const double deviation_;
};

}  // namespace

LayerOr MakeDense(const v1::Layer& config, const ImageShape& input) {
  RETURN_IF_ERROR(CheckRange("units", config.dense().units(), 1, 10'000'000));
  return std::make_unique<DenseLayer>(config.dense(), input);
}

}  // namespace leeway
