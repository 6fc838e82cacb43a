// Lets users add layers, losses and update rules to Leeway. docs/plugins.md shows how to use it.
//
// A plugin is a shared object that includes this header and nothing else of Leeway:
//
//   #include "leeway/plugin.h"
//   LEEWAY_PLUGIN(registry) { registry.Add(leeway::plugin::LayerSpec{...}); }
//
//   g++ -std=c++20 -O3 -shared -fPIC mine.cc -o libmine.so
//
// A plugin runs inside workers, servers and the `leeway` command. All objects are made once and
// used often. Their methods are const and use no random numbers, so that the same input always
// gives the same bits.
//
// A plugin reports errors as exceptions. Their what() should state what is wrong and what to do;
// Leeway adds where the error happened. Methods that are noexcept here must not throw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace leeway::plugin {

// The version of this header. It changes whenever plugins must be compiled again.
inline constexpr uint32_t kVersion = 1;

// The name of the standard library. Plugin and program must use the same library, because they pass
// standard containers to each other.
#if defined(_LIBCPP_VERSION)
#define LEEWAY_PLUGIN_LIBRARY "libc++"
#elif defined(_GLIBCXX_DEBUG)
#define LEEWAY_PLUGIN_LIBRARY "libstdc++ with _GLIBCXX_DEBUG"
#elif defined(_GLIBCXX_USE_CXX11_ABI) && !_GLIBCXX_USE_CXX11_ABI
#define LEEWAY_PLUGIN_LIBRARY "libstdc++ with _GLIBCXX_USE_CXX11_ABI=0"
#else
#define LEEWAY_PLUGIN_LIBRARY "libstdc++"
#endif

// ---- options

// A number that the job sets by name.
struct Option {
  // Small letters, digits and '_'. The first character is a letter.
  std::string name;
  // One line of text for messages.
  std::string about = {};
  // The default. If absent, the job must set the option.
  std::optional<double> value = std::nullopt;
  std::optional<double> min = std::nullopt;
  std::optional<double> above = std::nullopt;
  std::optional<double> max = std::nullopt;
  std::optional<double> below = std::nullopt;
};

// The value of every registered option, within its bounds.
class Options {
 public:
  explicit Options(std::map<std::string, double> values = {}) : values_(std::move(values)) {}
  // Throws std::out_of_range for a name that is not registered.
  double operator[](const std::string& name) const {
    const auto found = values_.find(name);
    if (found != values_.end()) return found->second;
    throw std::out_of_range("the plugin reads the option '" + name + "', but does not register it");
  }

 private:
  std::map<std::string, double> values_;
};

// ---- layers

// The shape of one example. Values are stored row by row, with channels last. An example that is
// not an image is 1 x 1 x channels.
struct Shape {
  uint32_t height = 1;
  uint32_t width = 1;
  uint32_t channels = 1;

  size_t elements() const { return size_t{height} * width * channels; }
};

// The kind of a tensor. update.factors may treat kinds differently.
enum class TensorKind : uint32_t { kWeight, kBias };

// The initial values of a tensor.
struct Start {
  enum class Kind : uint32_t { kConstant, kNormal, kHeNormal, kGlorotUniform };
  Kind kind = Kind::kConstant;
  // The constant, or the standard deviation of kNormal.
  double value = 0;
  uint64_t fan_in = 0;
  uint64_t fan_out = 0;

  static Start Constant(double value) { return {Kind::kConstant, value}; }
  // Normal, with mean 0.
  static Start Normal(double deviation) { return {Kind::kNormal, deviation}; }
  // Normal, with variance 2 / fan_in (He et al. 2015).
  static Start HeNormal(uint64_t fan_in) { return {Kind::kHeNormal, 0, fan_in}; }
  // Uniform in +-sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010).
  static Start GlorotUniform(uint64_t fan_in, uint64_t fan_out) {
    return {Kind::kGlorotUniform, 0, fan_in, fan_out};
  }
};

// A trained tensor. Its name in checkpoints and exports is LAYER/name.
struct Tensor {
  // Letters, digits, '_' and '-'.
  std::string name;
  std::vector<uint64_t> shape;
  TensorKind kind = TensorKind::kWeight;
  Start start = {};
};

// One batch that passes through one layer.
struct Pass {
  // The number of examples, at least 1.
  size_t batch = 0;
  // Whether the model is being trained. If false, it is being evaluated, and no Backward follows.
  bool training = false;
  // The layer's weights, in the order of Layer::tensors().
  std::span<const float* const> weights;
  // The gradients of the weights, in the same order. Backward writes all of each gradient. Empty in
  // Forward.
  std::span<float* const> gradients;
  // Memory of Layer::saved() floats, which stay unchanged from Forward to Backward.
  float* saved = nullptr;
  // Memory of Layer::scratch() floats for one call.
  float* scratch = nullptr;
};

class Layer {
 public:
  virtual ~Layer() = default;

  virtual Shape output() const = 0;
  virtual std::vector<Tensor> tensors() const { return {}; }
  virtual size_t saved(size_t batch) const noexcept { return 0; }
  virtual size_t scratch(size_t batch) const noexcept { return 0; }
  // Returns the floating-point operations of one example's forward pass, for `leeway plan`.
  virtual double flops() const noexcept { return 0; }

  // Computes y [batch x output] from x [batch x input]. x and y do not overlap.
  virtual void Forward(const Pass& pass, const float* x, float* y) const = 0;
  // Computes pass.gradients and dx from dy. dy and dx are the gradients with respect to y and x. dx
  // is null if Leeway does not need it. x and y are as in Forward.
  virtual void Backward(const Pass& pass, const float* x, const float* y, const float* dy,
                        float* dx) const = 0;
};

struct LayerSpec {
  // A name like that of an option.
  std::string name;
  std::vector<Option> options = {};
  // Makes a layer for examples of shape `input`. Throws std::invalid_argument if the shape does not
  // fit.
  std::function<std::unique_ptr<Layer>(const Options& options, const Shape& input)> make = {};
};

// ---- losses

// The kind of the data's labels.
enum class Labels : uint32_t {
  // Any finite numbers, one for each example. The last layer returns one score.
  kNumbers,
  // Class numbers from 0. The last layer returns one score for each class, at each position.
  kClasses,
};

// The scores of a batch and their labels.
struct Scores {
  // The number of examples, or the number of positions in all examples together.
  size_t rows = 0;
  // The number of scores in a row.
  size_t units = 0;
  // Has shape [rows x units].
  const float* scores = nullptr;
  // Has shape [rows].
  const float* labels = nullptr;
};

class Loss {
 public:
  virtual ~Loss() = default;

  // Throws std::invalid_argument if `units` scores a row do not fit. `classes` is 0 for kNumbers.
  virtual void CheckOutput(size_t units, size_t classes) const {
    if (units >= classes) return;
    throw std::invalid_argument("the last layer computes " + std::to_string(units) +
                                " scores, but the data has " + std::to_string(classes) +
                                " classes");
  }
  // Throws std::invalid_argument, naming the label, if Compute does not accept one of the labels.
  // Labels are finite numbers, or classes below `units`.
  virtual void CheckLabels(std::span<const float> labels, size_t units) const {}
  // Returns the sum of the rows' losses. Unless `gradient` [rows x units] is null, writes the
  // gradient of the MEAN of the rows' losses to it.
  virtual double Compute(const Scores& scores, float* gradient) const = 0;
};

struct LossSpec {
  // A name like that of an option.
  std::string name;
  Labels labels = Labels::kNumbers;
  std::vector<Option> options = {};
  std::function<std::unique_ptr<Loss>(const Options& options)> make = {};
};

// ---- update rules

// State that the rule keeps for each element. It is saved, replicated and moved with the weights.
struct Slot {
  // A name like that of an option.
  std::string name;
  float start = 0;
};
inline constexpr size_t kSlotsMax = 3;

struct Step {
  // The learning rate of the schedule in this step.
  float learning_rate = 0;
  // The number of earlier updates, plus 1.
  uint64_t number = 1;
  // The factor of the rule's weight decay, if it has one (update.factors).
  double decay = 1;
};

// Some elements of the model. Each `out` pointer is equal to its `in` pointer, or their memory does
// not overlap.
struct Elements {
  size_t count = 0;
  const float* weights_in = nullptr;
  float* weights_out = nullptr;
  // The gradient. In a delta exchange it is the workers' weights before the local steps minus those
  // after them, which has the sign of a gradient.
  const float* gradient = nullptr;
  // In the order of UpdateRule::slots().
  const float* const* slots_in = nullptr;
  float* const* slots_out = nullptr;
};

// Several threads call Apply at once. Apply is elementwise: the result for an element depends only
// on that element, its gradient, its slots and the step. So Leeway may cut the model anywhere.
class UpdateRule {
 public:
  virtual ~UpdateRule() = default;
  // Returns the rule's slots, at most kSlotsMax.
  virtual std::vector<Slot> slots() const { return {}; }
  // Writes every weight and slot. Leeway itself checks that all of them are finite.
  virtual void Apply(const Step& step, const Elements& elements) const noexcept = 0;
};

struct RuleSpec {
  // A name like that of an option.
  std::string name;
  std::vector<Option> options = {};
  std::function<std::unique_ptr<UpdateRule>(const Options& options)> make = {};
};

// ---- what a plugin brings

struct Registry {
  std::vector<LayerSpec> layers;
  std::vector<LossSpec> losses;
  std::vector<RuleSpec> rules;

  void Add(LayerSpec layer) { layers.push_back(std::move(layer)); }
  void Add(LossSpec loss) { losses.push_back(std::move(loss)); }
  void Add(RuleSpec rule) { rules.push_back(std::move(rule)); }
};

}  // namespace leeway::plugin

extern "C" {

// The struct that Leeway reads first from a plugin. Its layout never changes.
struct LeewayPlugin {
  uint32_t version;
  const char* library;
  // `registry` points to a leeway::plugin::Registry of `version`. This function throws only the
  // plugin's own exceptions.
  void (*add)(void* registry);
};

}  // extern "C"

// Use this once in a plugin. The body that follows it fills the registry.
#define LEEWAY_PLUGIN(registry)                                                              \
  static void LeewayPluginAdd(leeway::plugin::Registry& registry);                           \
  extern "C" __attribute__((visibility("default"))) const LeewayPlugin* leeway_plugin() {    \
    static const LeewayPlugin plugin = {                                                     \
        leeway::plugin::kVersion, LEEWAY_PLUGIN_LIBRARY,                                     \
        [](void* into) { LeewayPluginAdd(*static_cast<leeway::plugin::Registry*>(into)); }}; \
    return &plugin;                                                                          \
  }                                                                                          \
  static void LeewayPluginAdd(leeway::plugin::Registry& registry)
