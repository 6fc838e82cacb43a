// Layers, losses and update rules of one's own, for Leeway. docs/plugins.md shows how to use it.
//
// A plugin is a shared object that includes this header and nothing else of Leeway:
//
//   #include "leeway/plugin.h"
//   LEEWAY_PLUGIN(registry) { registry.Add(leeway::plugin::LayerSpec{...}); }
//
//   g++ -std=c++20 -O3 -shared -fPIC mine.cc -o libmine.so
//
// It runs inside workers, servers and the `leeway` command. All objects are made once and used
// often; their methods are const, and draw nothing: the same input gives the same bits.
//
// Errors are exceptions: what() should say what is wrong and what to do, and Leeway adds where.
// Methods that are noexcept here must not throw.
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

// Of this header. It changes whenever a plugin must be compiled anew.
inline constexpr uint32_t kVersion = 1;

// What else plugin and program must have in common, because standard containers cross the border.
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

// A number that the job gives by name.
struct Option {
  // Small letters, digits and '_', beginning with a letter.
  std::string name;
  // One line, for messages.
  std::string about = {};
  // Nothing: the job must give the option.
  std::optional<double> value = std::nullopt;
  std::optional<double> min = std::nullopt;
  std::optional<double> above = std::nullopt;
  std::optional<double> max = std::nullopt;
  std::optional<double> below = std::nullopt;
};

// Every registered option, with a value within its bounds.
class Options {
 public:
  explicit Options(std::map<std::string, double> values = {}) : values_(std::move(values)) {}
  // std::out_of_range for a name that is not registered.
  double operator[](const std::string& name) const {
    const auto found = values_.find(name);
    if (found != values_.end()) return found->second;
    throw std::out_of_range("the plugin reads the option '" + name + "', but does not register it");
  }

 private:
  std::map<std::string, double> values_;
};

// ---- layers

// Of one example; values lie row by row, channels last. What is no image is 1 x 1 x channels.
struct Shape {
  uint32_t height = 1;
  uint32_t width = 1;
  uint32_t channels = 1;

  size_t elements() const { return size_t{height} * width * channels; }
};

// update.factors may treat kinds differently.
enum class TensorKind : uint32_t { kWeight, kBias };

// How a tensor starts.
struct Start {
  enum class Kind : uint32_t { kConstant, kNormal, kHeNormal, kGlorotUniform };
  Kind kind = Kind::kConstant;
  // The constant, or the deviation of kNormal.
  double value = 0;
  uint64_t fan_in = 0;
  uint64_t fan_out = 0;

  static Start Constant(double value) { return {Kind::kConstant, value}; }
  // Of mean 0.
  static Start Normal(double deviation) { return {Kind::kNormal, deviation}; }
  // Normal, of variance 2 / fan_in (He et al. 2015).
  static Start HeNormal(uint64_t fan_in) { return {Kind::kHeNormal, 0, fan_in}; }
  // Uniform in +-sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010).
  static Start GlorotUniform(uint64_t fan_in, uint64_t fan_out) {
    return {Kind::kGlorotUniform, 0, fan_in, fan_out};
  }
};

// A trained tensor. Checkpoints and exports call it LAYER/name.
struct Tensor {
  // Letters, digits, '_' and '-'.
  std::string name;
  std::vector<uint64_t> shape;
  TensorKind kind = TensorKind::kWeight;
  Start start = {};
};

// One batch on its way through one layer.
struct Pass {
  // Examples, at least 1.
  size_t batch = 0;
  // False: the model is evaluated, and no Backward follows.
  bool training = false;
  // In the order of Layer::tensors().
  std::span<const float* const> weights;
  // Backward writes each whole. Empty in Forward.
  std::span<float* const> gradients;
  // Layer::saved() floats, which live from Forward to Backward.
  float* saved = nullptr;
  // Layer::scratch() floats, which live within one call.
  float* scratch = nullptr;
};

class Layer {
 public:
  virtual ~Layer() = default;

  virtual Shape output() const = 0;
  virtual std::vector<Tensor> tensors() const { return {}; }
  virtual size_t saved(size_t batch) const noexcept { return 0; }
  virtual size_t scratch(size_t batch) const noexcept { return 0; }
  // Floating-point operations of one example's forward pass, for what `leeway plan` tells.
  virtual double flops() const noexcept { return 0; }

  // x [batch x input] -> y [batch x output], which do not overlap.
  virtual void Forward(const Pass& pass, const float* x, float* y) const = 0;
  // From dy, the gradient by y, to pass.gradients and dx, the gradient by x. dx is null if nobody
  // needs it. x and y are as Forward had them.
  virtual void Backward(const Pass& pass, const float* x, const float* y, const float* dy,
                        float* dx) const = 0;
};

struct LayerSpec {
  // As options are named.
  std::string name;
  std::vector<Option> options = {};
  // For examples of a shape. Throw std::invalid_argument if it does not fit.
  std::function<std::unique_ptr<Layer>(const Options& options, const Shape& input)> make = {};
};

// ---- losses

// What the labels of the data are.
enum class Labels : uint32_t {
  // Any finite numbers, one an example. The last layer gives one score.
  kNumbers,
  // Class numbers from 0. The last layer gives one score for each class, of each position.
  kClasses,
};

// The scores of a batch and their labels.
struct Scores {
  // Examples, or positions of all of them.
  size_t rows = 0;
  // Scores of a row.
  size_t units = 0;
  // [rows x units]
  const float* scores = nullptr;
  // [rows]
  const float* labels = nullptr;
};

class Loss {
 public:
  virtual ~Loss() = default;

  // Throw std::invalid_argument if so many scores do not fit. `classes` is 0 for kNumbers.
  virtual void CheckOutput(size_t units, size_t classes) const {
    if (units >= classes) return;
    throw std::invalid_argument("the last layer gives " + std::to_string(units) +
                                " scores, but the data has " + std::to_string(classes) +
                                " classes");
  }
  // Throw std::invalid_argument naming the label that Compute does not take. Labels are finite
  // numbers, or classes below `units`.
  virtual void CheckLabels(std::span<const float> labels, size_t units) const {}
  // The sum of the rows' losses. `gradient` [rows x units], where not null: that of their MEAN.
  virtual double Compute(const Scores& scores, float* gradient) const = 0;
};

struct LossSpec {
  // As options are named.
  std::string name;
  Labels labels = Labels::kNumbers;
  std::vector<Option> options = {};
  std::function<std::unique_ptr<Loss>(const Options& options)> make = {};
};

// ---- update rules

// State that the rule keeps of each element: it is saved, replicated and moved with the weights.
struct Slot {
  // As options are named.
  std::string name;
  float start = 0;
};
inline constexpr size_t kSlotsMax = 3;

struct Step {
  // As the schedule has it in this step.
  float learning_rate = 0;
  // Updates before this one, plus 1.
  uint64_t number = 1;
  // What the rule's weight decay, if it has one, is multiplied by (update.factors).
  double decay = 1;
};

// Some elements of the model. Each `out` is either its `in` or does not overlap it.
struct Elements {
  size_t count = 0;
  const float* weights_in = nullptr;
  float* weights_out = nullptr;
  // Or, from a delta exchange, what the workers' weights have lost: of the same sign.
  const float* gradient = nullptr;
  // In the order of UpdateRule::slots().
  const float* const* slots_in = nullptr;
  float* const* slots_out = nullptr;
};

// Several threads call Apply at once. It is elementwise: what an element becomes depends on that
// element, its gradient, its slots and the step only, so the model may be cut anywhere.
class UpdateRule {
 public:
  virtual ~UpdateRule() = default;
  // At most kSlotsMax.
  virtual std::vector<Slot> slots() const { return {}; }
  // Writes every weight and slot. Leeway itself checks that all of it is finite.
  virtual void Apply(const Step& step, const Elements& elements) const noexcept = 0;
};

struct RuleSpec {
  // As options are named.
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

// The first thing that Leeway reads of a plugin; it never changes.
struct LeewayPlugin {
  uint32_t version;
  const char* library;
  // `registry`: a leeway::plugin::Registry of that version. Throws nothing but what the plugin
  // does.
  void (*add)(void* registry);
};

}  // extern "C"

// The body that follows fills the registry. Once in a plugin.
#define LEEWAY_PLUGIN(registry)                                                              \
  static void LeewayPluginAdd(leeway::plugin::Registry& registry);                           \
  extern "C" __attribute__((visibility("default"))) const LeewayPlugin* leeway_plugin() {    \
    static const LeewayPlugin plugin = {                                                     \
        leeway::plugin::kVersion, LEEWAY_PLUGIN_LIBRARY,                                     \
        [](void* into) { LeewayPluginAdd(*static_cast<leeway::plugin::Registry*>(into)); }}; \
    return &plugin;                                                                          \
  }                                                                                          \
  static void LeewayPluginAdd(leeway::plugin::Registry& registry)
