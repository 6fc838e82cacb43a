// The arithmetic of training, as an interface between layers and devices.
//
// Every `float*` argument of a kernel is device memory, row-major and packed (except for the
// strides of a product). Unless a comment says otherwise, outputs are overwritten, not added to,
// and must not overlap inputs. Gradients are written dx, which stands for the derivative of the
// loss by x. Kernels do not check sizes, because Model::Build has checked them.
//
// Every implementation promises that results are a function of the values of the inputs alone.
// Results depend neither on the addresses of buffers nor on timing, so a step that is computed
// again gives the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/codec/group_format.h"
#include "common/update/rule.h"
#include "worker/compute/shapes.h"

namespace leeway {

// How a product reads a matrix operand: as it is in memory, or transposed.
enum class Op { kAsIs, kTransposed };

// A product of [m x k] by [k x n]. A stride is the distance between the stored rows of a matrix, in
// floats. Strides are for matrices that are parts of larger ones; 0 means packed.
struct GemmShape {
  size_t m = 0;
  size_t n = 0;
  size_t k = 0;
  size_t a_stride = 0;
  size_t b_stride = 0;
  size_t c_stride = 0;
};

enum class Activation : uint8_t {
  // max(x, 0).
  kRelu,
  // min(max(x, 0), 6).
  kRelu6,
  kTanh,
  // x Phi(x) with the exact Phi, by the error function (Hendrycks and Gimpel 2016).
  kGelu,
  // x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), which approximates x Phi(x) (same paper).
  kTanhGelu,
  // x / (1 + exp(-x)).
  kSilu,
};
// Returns true if the slope is computed from the function's value y, and false if from its argument
// x.
constexpr bool SlopeReadsOutput(Activation activation) {
  return activation == Activation::kRelu || activation == Activation::kRelu6 ||
         activation == Activation::kTanh;
}

// Sums over the examples of a batch.
struct LossSum {
  double loss = 0;
  // The number of examples that the loss counts as correct.
  uint64_t correct = 0;
  // The number of examples whose class has one of the five highest scores.
  uint64_t in_top5 = 0;
};

// Identifies the draws of one dropout layer in one step; see DropoutForward.
struct DropoutKey {
  uint64_t key = 0;
  uint64_t stream = 0;
};

// The tensors of batch normalisation, with `columns` floats each.
struct BatchNormWeights {
  const float* gamma = nullptr;
  const float* beta = nullptr;
  const float* running_mean = nullptr;
  const float* running_var = nullptr;
};
struct BatchNormOptions {
  size_t rows = 0;
  size_t columns = 0;
  float epsilon = 0;
};

// An update of a whole vector by one contribution (common/update/apply.h). All pointers are to
// device memory.
struct VectorUpdate {
  // The averaged elements from the end of the previous Average to `end`. They move towards the
  // contribution by `share` of the difference.
  struct Average {
    size_t end = 0;
    float share = 0;
  };

  // The rule must outlive the queued work.
  const UpdateRule* rule = nullptr;
  UpdateStep step = {};
  size_t count = 0;
  size_t trained = 0;
  // These ranges cover all elements from `trained` on, in order.
  std::vector<Average> averages = {};
  // These parts cover all trained elements, in order. An empty list stands for one part, with
  // `step` unchanged.
  std::vector<UpdatePart> parts = {};
  const float* contribution = nullptr;
  float* weights = nullptr;
  // The optimizer's vectors, in the order of rule->slots().
  std::vector<float*> slots = {};
};

// To add a kernel, declare it here and in each backend (worker/compute/eigen, worker/device/cuda),
// and say in tests/worker/device/wrapped_backend.h which memory it reads and writes.
class Kernels {
 public:
  virtual ~Kernels() = default;

  // ---- flat vectors
  // Computes out = base + scale * (a - b), or scale * (a - b) if `base` is null. `out` may be
  // any of the inputs.
  virtual void AddDifference(size_t count, float scale, const float* a, const float* b,
                             const float* base, float* out) = 0;
  // Takes an optimizer's step. Sets *finite (device memory) to 1 if all written values are finite,
  // otherwise to 0.
  virtual void Update(const VectorUpdate& update, float* finite) = 0;
  // Computes x *= factor. If `finite` is not null, sets *finite (device memory) to 0 if a result is
  // not finite, and otherwise leaves it unchanged.
  virtual void Scale(size_t count, float factor, float* x, float* finite) = 0;

  // Encodes the `count` sums values + residual to bytes in `encoded`, with the same bits as the
  // CPU's codec of that format. Sets `residual` to what the encoding loses (common/codec/codec.h).
  // If the encoding does not fill the last float of `encoded`, the rest of that float is undefined.
  virtual void Encode(GroupFormat format, size_t count, const float* values, float* residual,
                      float* encoded) = 0;

  // ---- elementwise and by row
  virtual void Fill(size_t count, float value, float* y) = 0;
  virtual void Copy(size_t count, const float* x, float* y) = 0;
  // Copies columns of x to columns of y. Leaves other columns of y unchanged.
  virtual void CopyColumns(const ColumnCopy& shape, const float* x, float* y) = 0;
  // Computes z = x * y; z may be x or y.
  virtual void Multiply(size_t count, const float* x, const float* y, float* z) = 0;
  // Sets every row of y [rows x columns] to `row`.
  virtual void FillRows(size_t rows, size_t columns, const float* row, float* y) = 0;
  // Adds `row` to every row of y [rows x columns].
  virtual void AddRows(size_t rows, size_t columns, const float* row, float* y) = 0;
  // Sets sum [columns] to the sum of the rows of x.
  virtual void SumRows(size_t rows, size_t columns, const float* x, float* sum) = 0;

  // ---- products. Factors are rounded to the precision of the backend (precision.h); sums and
  // results are not rounded.
  // Computes c [m x n] = op(a) [m x k] op(b) [k x n]. With `accumulate` adds the product to c
  // instead.
  virtual void Gemm(const GemmShape& shape, Op op_a, const float* a, Op op_b, const float* b,
                    bool accumulate, float* c) = 0;

  // x is [batch x input]. weight is [patch x filters] in (row, column, channel) order. bias is
  // [filters] or null. Conv2dScratch returns the number of scratch floats that either pass needs.
  virtual size_t Conv2dScratch(const Conv2dShape& shape, size_t batch) const = 0;
  virtual void Conv2dForward(const Conv2dShape& shape, size_t batch, const float* x,
                             const float* weight, const float* bias, float* scratch, float* y) = 0;
  // dbias and dx may be null if they are not needed.
  virtual void Conv2dBackward(const Conv2dShape& shape, size_t batch, const float* x,
                              const float* weight, const float* dy, float* scratch, float* dweight,
                              float* dbias, float* dx) = 0;

  // Convolves each channel separately, in float32, with one filter for each channel. weight is
  // [kernel * kernel x channels]. bias is [channels] or null.
  virtual void DepthwiseForward(const Conv2dShape& shape, size_t batch, const float* x,
                                const float* weight, const float* bias, float* y) = 0;
  // dx may be null if it is not needed.
  virtual void DepthwiseBackward(const Conv2dShape& shape, size_t batch, const float* x,
                                 const float* weight, const float* dy, float* dweight,
                                 float* dx) = 0;

  // ---- pooling
  // Sets winners [batch x output] to the position of the maximum in each window. If several values
  // are the maximum, the first one wins. `winners` may be null if it is not needed.
  virtual void MaxPoolForward(const PoolShape& shape, size_t batch, const float* x, float* winners,
                              float* y) = 0;
  virtual void MaxPoolBackward(const PoolShape& shape, size_t batch, const float* winners,
                               const float* dy, float* dx) = 0;
  virtual void AvgPoolForward(const PoolShape& shape, size_t batch, const float* x, float* y) = 0;
  virtual void AvgPoolBackward(const PoolShape& shape, size_t batch, const float* dy,
                               float* dx) = 0;

  // ---- activations. y may be x, and dx may be dy. NaN stays NaN.
  virtual void ActivationForward(Activation activation, size_t count, const float* x, float* y) = 0;
  // `kept` is y if SlopeReadsOutput(activation), otherwise x.
  virtual void ActivationBackward(Activation activation, size_t count, const float* kept,
                                  const float* dy, float* dx) = 0;

  // Drops element i if word i % 4 of Philox4x32({i / 4, key.stream}, key.key) is below rate * 2^32.
  // Multiplies the other elements by 1 / (1 - rate). Sets `mask` to the factors. y may be x.
  virtual void DropoutForward(size_t count, float rate, const DropoutKey& key, const float* x,
                              float* mask, float* y) = 0;

  // ---- batch normalisation over the columns of x [rows x columns] (Ioffe and Szegedy 2015)
  // Normalises by the batch's mean and biased variance. Writes the means, and then 1 / standard
  // deviation, to `saved`. batch_mean and batch_var are for the running statistics, so batch_var is
  // unbiased (as in PyTorch). A batch of one row has no unbiased variance. In that case only, the
  // function reads the running statistics and copies them to batch_mean and batch_var.
  virtual void BatchNormForward(const BatchNormOptions& options, const BatchNormWeights& weights,
                                const float* x, float* saved, float* batch_mean, float* batch_var,
                                float* y) = 0;
  // Normalises by the running statistics.
  virtual void BatchNormInference(const BatchNormOptions& options, const BatchNormWeights& weights,
                                  const float* x, float* y) = 0;
  // dx may be null if it is not needed, or dy itself.
  virtual void BatchNormBackward(const BatchNormOptions& options, const float* gamma,
                                 const float* x, const float* saved, const float* dy, float* dgamma,
                                 float* dbeta, float* dx) = 0;

  // ---- group normalisation (Wu and He 2018). Layer normalisation (Ba, Kiros, Hinton 2016) is the
  // case of one group and one pixel. x is [batch x pixels x channels]. gamma and beta are
  // [channels], and beta may be null. The forward pass writes the means, and then 1 / standard
  // deviation by the biased variance, to `saved` [2 x shape.means()].
  virtual void GroupNormForward(const GroupNormShape& shape, const float* gamma, const float* beta,
                                const float* x, float* saved, float* y) = 0;
  // `scratch` must be as large as `saved`. dbeta and dx may be null if they are not needed.
  virtual void GroupNormBackward(const GroupNormShape& shape, const float* gamma, const float* x,
                                 const float* saved, const float* dy, float* scratch, float* dgamma,
                                 float* dbeta, float* dx) = 0;

  // ---- tokens: whole numbers from 0 to the vocabulary - 1
  // Sets each row of y [count x width] to its token's row of weight [vocabulary x width].
  virtual void EmbedForward(const EmbedShape& shape, const float* tokens, const float* weight,
                            float* y) = 0;
  // Sets each row of dweight to the sum of the rows of dy that have the row's token, in the order
  // of the tokens. With `accumulate` adds the sums to dweight instead.
  virtual void EmbedBackward(const EmbedShape& shape, const float* tokens, const float* dy,
                             bool accumulate, float* dweight) = 0;

  // ---- attention (Vaswani et al. 2017, equation 1), in parts Rotates queries and keys within qkv
  // by their positions (Su et al. 2021, equation 34). Unlike there, the two channels of a pair are
  // half a head apart. `back` reverses the rotation.
  virtual void Rotate(const AttentionShape& shape, size_t batch, bool back, float* qkv) = 0;
  // Sets p [batch x heads x positions x positions] to softmax(q k^T / sqrt(width)) over the
  // positions that are seen, and to 0 for the other positions.
  virtual void AttentionScores(const AttentionShape& shape, size_t batch, const float* qkv,
                               float* p) = 0;
  // Computes y [batch x positions x channels] = p v.
  virtual void AttentionMix(const AttentionShape& shape, size_t batch, const float* p,
                            const float* qkv, float* y) = 0;
  // Computes dp, and the elements of dqkv for values. The elements of dp for positions that are not
  // seen are undefined.
  virtual void AttentionMixBackward(const AttentionShape& shape, size_t batch, const float* p,
                                    const float* qkv, const float* dy, float* dp, float* dqkv) = 0;
  // Computes the elements of dqkv for queries and keys. Overwrites dp.
  virtual void AttentionScoresBackward(const AttentionShape& shape, size_t batch, const float* p,
                                       const float* qkv, float* dp, float* dqkv) = 0;

  // ---- losses. `sum` is device memory. dscores becomes the gradient of the MEAN loss, and may be
  // null if it is not needed. The caller has checked that labels are in range.
  // scores is [rows x classes]. An example counts as correct if its label has the highest score and
  // no earlier class has the same score. The target of the label's class is 1 - smoothing +
  // smoothing / classes. The target of each other class is smoothing / classes (Szegedy et al.
  // 2016, section 7).
  virtual void SoftmaxCrossEntropy(const SoftmaxLossShape& shape, const float* scores,
                                   const float* labels, LossSum* sum, float* dscores) = 0;
  // scores is [batch]. A label is 1 for one class, and 0 or -1 for the other class. An example
  // counts as correct if the sign of its score is that of its class.
  virtual void Logistic(size_t batch, const float* scores, const float* labels, LossSum* sum,
                        float* dscores) = 0;
  // The loss is 1/2 (score - label)^2. No example counts as correct.
  virtual void Squared(size_t batch, const float* scores, const float* labels, LossSum* sum,
                       float* dscores) = 0;
};

}  // namespace leeway
