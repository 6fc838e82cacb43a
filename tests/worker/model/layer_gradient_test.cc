// Every layer's gradients with respect to its input and weights, against central differences of its
// own forward pass.
#include "tests/worker/model/support.h"

namespace leeway::testing::layer_gradient {
namespace {

// A power of two, so that x + h and x - h are exactly 2 h apart except for the rounding of x.
constexpr float kStep = 1.0f / 64;
constexpr double kTolerance = 1e-3;

// One layer with weights, and the scalar L = sum(r * y) for a fixed random r.
class Probe {
 public:
  Probe(const std::string& config, const ImageShape& input, size_t batch, uint32_t threads)
      : backend_(TestBackend(threads)), batch_(batch) {
    v1::Layer proto;
    REQUIRE(google::protobuf::TextFormat::ParseFromString(config, &proto));
    LayerOr layer = MakeLayer(proto, input);
    INFO(layer.status());
    REQUIRE(layer.ok());
    layer_ = *std::move(layer);
    uint64_t seed = 10;
    for (const TensorPlan& plan : layer_->tensors()) {
      tensors_.push_back(RandomValues(plan.elements(), ++seed, 0.5));
      for (float& value : tensors_.back()) value += plan.constant;
      gradients_.emplace_back(plan.elements(), 7.0f);
    }
    r_ = RandomValues(batch * layer_->output().elements(), 2);
    saved_.resize(layer_->saved(batch));
    scratch_.resize(layer_->scratch(*backend_, batch));
    x = RandomValues(batch * input.elements(), 1);
  }

  double Loss() {
    const std::vector<float> y = Forward();
    double sum = 0;
    for (size_t i = 0; i < y.size(); ++i) sum += static_cast<double>(r_[i]) * y[i];
    return sum;
  }

  // Returns the gradients with respect to the input and to each trained tensor.
  std::vector<std::vector<float>> Backward() {
    const std::vector<float> y = Forward();
    std::vector<float> dy = r_;
    std::vector<float> dx(x.size(), 7.0f);
    if (layer_->placement() == Placement::kView) {
      dx = dy;
    } else {
      layer_->Backward(pass(), x.data(), y.data(), dy.data(), dx.data());
    }
    std::vector<std::vector<float>> all = {dx};
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (layer_->tensors()[i].trained) all.push_back(gradients_[i]);
    }
    return all;
  }

  // The values with respect to which the gradients are taken.
  std::vector<std::vector<float>*> Variables() {
    std::vector<std::vector<float>*> all = {&x};
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (layer_->tensors()[i].trained) all.push_back(&tensors_[i]);
    }
    return all;
  }

  std::vector<float> x;

 private:
  Pass pass() {
    weights_.clear();
    contributions_.clear();
    for (auto& tensor : tensors_) weights_.push_back(tensor.data());
    for (auto& gradient : gradients_) contributions_.push_back(gradient.data());
    return {.backend = *backend_,
            .batch = batch_,
            .training = true,
            .draw = {1, 2, 3},
            .layer = 4,
            .weights = weights_,
            .contributions = contributions_,
            .saved = saved_.data(),
            .scratch = scratch_.data()};
  }
  std::vector<float> Forward() {
    if (layer_->placement() == Placement::kView) return x;
    std::vector<float> y(r_.size(), 7.0f);
    layer_->Forward(pass(), x.data(), y.data());
    return y;
  }

  std::unique_ptr<Backend> backend_;
  size_t batch_;
  std::unique_ptr<Layer> layer_;
  std::vector<std::vector<float>> tensors_, gradients_;
  std::vector<float> r_, saved_, scratch_;
  std::vector<const float*> weights_;
  std::vector<float*> contributions_;
};

void CheckGradients(Probe& probe) {
  const std::vector<std::vector<float>> gradients = probe.Backward();
  const std::vector<std::vector<float>*> variables = probe.Variables();
  for (size_t v = 0; v < variables.size(); ++v) {
    std::vector<double> slopes;
    for (float& value : *variables[v]) {
      const float kept = value;
      value = kept + kStep;
      const float up = value;
      const double above = probe.Loss();
      value = kept - kStep;
      const double below = probe.Loss();
      slopes.push_back((above - below) / (static_cast<double>(up) - value));
      value = kept;
    }
    CAPTURE(v);
    CHECK(Norm(slopes) > 0.1);
    CHECK(RelativeError(gradients[v], slopes) < kTolerance);
  }
}

void Check(const std::string& config, const ImageShape& input, size_t batch) {
  CAPTURE(config, input.height, input.width, input.channels, batch);
  Probe probe(config, input, batch, GENERATE(1u, 2u));
  CheckGradients(probe);
}

TEST_CASE("gradients of dense") {
  Check("dense { units: 5 }", {1, 1, 7}, 3);
  Check("dense { units: 1 }", {1, 1, 13}, 1);
  Check("dense { units: 4 bias: false }", {3, 2, 3}, 5);
  Check("dense { units: 33 }", {1, 1, 21}, 9);
}

TEST_CASE("gradients of conv2d") {
  Check("conv2d { filters: 3 kernel: 3 }", {5, 6, 2}, 2);
  Check("conv2d { filters: 2 kernel: 3 padding: 1 stride: 2 }", {5, 7, 3}, 2);
  Check("conv2d { filters: 1 kernel: 5 padding: 2 }", {4, 3, 1}, 3);
  Check("conv2d { filters: 4 kernel: 2 stride: 3 bias: false }", {7, 8, 2}, 1);
  Check("conv2d { filters: 3 kernel: 1 }", {2, 3, 5}, 2);
}

TEST_CASE("gradients of conv2d in groups") {
  // As many groups as channels, and as many filters: a depthwise convolution.
  Check("conv2d { filters: 3 kernel: 3 groups: 3 padding: 1 }", {5, 6, 3}, 2);
  Check("conv2d { filters: 17 kernel: 3 groups: 17 stride: 2 padding: 1 bias: false }", {6, 5, 17},
        2);
  Check("conv2d { filters: 9 kernel: 2 groups: 9 stride: 3 }", {7, 8, 9}, 1);
  // Two filters for each channel.
  Check("conv2d { filters: 6 kernel: 3 groups: 3 padding: 1 }", {4, 5, 3}, 2);
  Check("conv2d { filters: 4 kernel: 3 groups: 2 stride: 2 padding: 1 }", {5, 7, 6}, 3);
  Check("conv2d { filters: 8 kernel: 1 groups: 4 bias: false }", {3, 2, 4}, 2);
}

TEST_CASE("gradients of max_pool") {
  const auto check = [](const std::string& config, const ImageShape& input) {
    CAPTURE(config);
    Probe probe(config, input, 2, 1);
    // All values are further apart than the step, so that no winner changes.
    std::vector<float> ladder(probe.x.size());
    for (size_t i = 0; i < ladder.size(); ++i) ladder[i] = static_cast<float>(i) * 4 * kStep;
    RandomStream(1, RandomPurpose::kShuffle).Shuffle(ladder);
    probe.x = ladder;
    CheckGradients(probe);
  };
  check("max_pool {}", {6, 4, 3});
  check("max_pool { size: 2 }", {5, 5, 2});
  check("max_pool { size: 3 stride: 2 }", {7, 8, 17});
  check("max_pool { size: 2 stride: 3 }", {5, 6, 1});
  check("max_pool { size: 3 stride: 2 padding: 1 }", {7, 8, 5});
  check("max_pool { size: 2 padding: 1 }", {3, 1, 9});
}

TEST_CASE("gradients of avg_pool") {
  Check("avg_pool {}", {6, 4, 3}, 2);
  Check("avg_pool { size: 3 stride: 2 }", {7, 8, 17}, 2);
  Check("avg_pool { size: 2 stride: 3 }", {5, 6, 1}, 3);
}

TEST_CASE("gradients of global_avg_pool") {
  Check("global_avg_pool {}", {4, 4, 17}, 2);
  Check("global_avg_pool {}", {2, 5, 3}, 3);
  Check("global_avg_pool {}", {1, 1, 4}, 2);
}

TEST_CASE("gradients of pad_channels") {
  Check("pad_channels { before: 2 after: 3 }", {3, 2, 4}, 2);
  Check("pad_channels { after: 1 }", {1, 1, 3}, 3);
}

TEST_CASE("gradients of layer_norm") {
  Check("layer_norm {}", {1, 1, 21}, 3);
  Check("layer_norm { epsilon: 0.01 bias: false }", {3, 2, 18}, 2);
}

TEST_CASE("gradients of group_norm") {
  Check("group_norm { groups: 1 }", {3, 4, 4}, 2);
  Check("group_norm { groups: 3 epsilon: 0.01 }", {2, 3, 6}, 3);
  Check("group_norm { groups: 20 }", {5, 5, 20}, 1);
}

TEST_CASE("gradients of relu6") {
  Probe probe("relu6 {}", {3, 5, 3}, 3, 1);
  // The values are on both sides of both kinks, and away from them.
  for (float& value : probe.x) {
    value = 3 + 4 * value;
    if (std::abs(value) < 2 * kStep) value = 4 * kStep;
    if (std::abs(value - 6) < 2 * kStep) value = 6 + 4 * kStep;
  }
  CheckGradients(probe);
}

TEST_CASE("gradients of silu") { Check("silu {}", {3, 5, 3}, 3); }

TEST_CASE("gradients of relu") {
  Probe probe("relu {}", {3, 5, 3}, 3, 1);
  // The values are away from the kink.
  for (float& value : probe.x) value += value < 0 ? -2 * kStep : 2 * kStep;
  CheckGradients(probe);
}

TEST_CASE("gradients of gelu") { Check("gelu {}", {3, 5, 3}, 3); }

TEST_CASE("gradients of tanh") { Check("tanh {}", {3, 5, 3}, 3); }

TEST_CASE("gradients of batch_norm") {
  Check("batch_norm {}", {1, 1, 5}, 7);
  Check("batch_norm { epsilon: 0.01 }", {3, 4, 3}, 2);
}

TEST_CASE("gradients of gelu by tanh") { Check("gelu { tanh: true }", {3, 5, 3}, 3); }

TEST_CASE("gradients of pointwise dense") {
  Check("dense { units: 5 pointwise: true }", {3, 2, 4}, 3);
  Check("dense { units: 21 pointwise: true bias: false }", {7, 1, 9}, 2);
  Check("dense { units: 3 pointwise: true }", {1, 1, 6}, 4);
}

TEST_CASE("gradients of position_embedding") {
  Check("position_embedding {}", {4, 1, 3}, 3);
  Check("position_embedding {}", {2, 3, 5}, 1);
}

TEST_CASE("gradients of attention") {
  Check("attention { heads: 1 }", {3, 1, 2}, 2);
  Check("attention { heads: 2 bias: false }", {5, 1, 4}, 2);
  Check("attention { heads: 3 causal: false }", {4, 1, 9}, 3);
  Check("attention { heads: 2 rotary: true }", {6, 1, 8}, 2);
  Check("attention { heads: 1 rotary: true causal: false bias: false }", {3, 2, 6}, 1);
  Check("attention { heads: 2 dropout: 0.3 }", {5, 1, 4}, 3);
}

TEST_CASE("gradients of factor_interaction") {
  Check("factor_interaction { factors: 3 }", {1, 1, 5}, 4);
  Check("factor_interaction { factors: 1 }", {2, 2, 3}, 1);
}

TEST_CASE("gradients of dropout") { Check("dropout { rate: 0.4 }", {3, 5, 3}, 4); }

TEST_CASE("gradients of flatten") { Check("flatten {}", {3, 2, 2}, 2); }

}  // namespace
}  // namespace leeway::testing::layer_gradient
