// The arithmetic of training, as an interface: what a layer calls and a device implements.
//
// Every `float*` that a kernel takes is device memory, row-major and packed (but for the strides of
// a product). Outputs are written whole, not added to, unless said otherwise, and do not overlap
// inputs unless said otherwise. Gradients are written dx for "the loss's derivative by x". Sizes
// are trusted: Model::Build has checked them.
//
// Promise of every backend: the results are a function of the inputs' values alone. They depend
// neither on where the buffers lie nor on timing, so a step that is computed again gives the same
// bits. Not thread-safe: one backend serves one model at a time.
//
// A device works by itself: kernels and copies are queued in streams, and the host goes on. A
// stream runs what it holds in order; nothing else is ordered but by events. Whoever queues sees
// to it that
//   - work which reads what another stream writes, or writes what it reads, waits for an event
//     recorded behind that (Record, Wait);
//   - host memory that a copy reads stays as it is, and host memory that a copy writes is neither
//     read nor written, until an event recorded behind the copy is done (Done, Await).
// The CPU does everything at once, on the caller's thread: its events are always done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/codec/group_format.h"
#include "common/update/rule.h"
#include "worker/compute/shapes.h"

namespace leeway {

class Backend;

struct DeviceFree {
  Backend* backend = nullptr;
  void operator()(float* data) const;
};
// Device memory; must not outlive its backend.
using DeviceMemory = std::unique_ptr<float[], DeviceFree>;

struct HostUnpin {
  Backend* backend = nullptr;
  void operator()(float* host) const;
};
// Host memory that the device has pinned, for as long as this lives; null: it has not. Must outlive
// neither the memory nor the backend.
using PinnedMemory = std::unique_ptr<float, HostUnpin>;

// Whether a matrix operand enters a product as it lies in memory or transposed.
enum class Op { kAsIs, kTransposed };

// A product of [m x k] by [k x n], and how far apart the stored rows of its matrices begin, in
// floats: for parts of larger matrices. 0: packed.
struct GemmShape {
  size_t m = 0;
  size_t n = 0;
  size_t k = 0;
  size_t a_stride = 0;
  size_t b_stride = 0;
  size_t c_stride = 0;
};

// Kernels run in kCompute. Copies have streams of their own in either direction, so that they run
// while kernels do.
enum class Stream : uint8_t { kCompute, kUp, kDown };
inline constexpr size_t kStreams = 3;

// A point in a stream: what was queued there before it was recorded.
struct StreamEvent {
  // 0: done, as a default one is.
  uint64_t number = 0;
};

// Sums over the examples of a batch.
struct LossSum {
  double loss = 0;
  // Examples whose class was right.
  uint64_t correct = 0;
  // Whose class was among the five with the highest scores.
  uint64_t in_top5 = 0;
};

// Names the draws of one dropout layer in one step; see DropoutForward.
struct DropoutKey {
  uint64_t key = 0;
  uint64_t stream = 0;
};

// Tensors of batch normalisation, `columns` floats each.
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

// One update of a whole vector by one contribution (common/update/apply.h). Device memory.
struct VectorUpdate {
  // Averaged elements up to `end`, from those before, and their share of the way.
  struct Average {
    size_t end = 0;
    float share = 0;
  };

  // Outlives the work.
  const UpdateRule* rule = nullptr;
  UpdateStep step = {};
  size_t count = 0;
  size_t trained = 0;
  // All elements from `trained` on, in order.
  std::vector<Average> averages = {};
  // Of the trained elements all, in order; none: one part, with the step as it is.
  std::vector<UpdatePart> parts = {};
  const float* contribution = nullptr;
  float* weights = nullptr;
  // In the order of rule->slots().
  std::vector<float*> slots = {};
};

class Backend {
 public:
  virtual ~Backend() = default;

  // ---- memory
  // Aligned to 64 bytes; what it holds is anything. RESOURCE_EXHAUSTED. Free it when the streams
  // are done with it.
  virtual absl::StatusOr<DeviceMemory> Allocate(size_t count) = 0;
  // True: host memory is device memory, and nobody need copy.
  virtual bool shares_host_memory() const = 0;
  // Whether a large layer's product is computed panel by panel (layer.h), so that the first panel's
  // results leave while the others are computed. False: only copies are cut, because the product as
  // a whole takes less time than its parts.
  virtual bool cuts_products() const { return true; }
  // Pins host memory where that lets copies of it run by themselves; without, they may block. Takes
  // long: for what is copied again and again. The copies must be done when it is unpinned.
  virtual PinnedMemory Pin(std::span<float> host) { return {}; }

  // ---- streams
  virtual void CopyToDevice(Stream stream, std::span<const float> host, float* device) = 0;
  virtual void CopyToHost(Stream stream, const float* device, std::span<float> host) = 0;
  virtual StreamEvent Record(Stream stream) = 0;
  // What is queued in `stream` from now on begins when the event is done.
  virtual void Wait(Stream stream, StreamEvent event) = 0;
  // Never blocks.
  virtual bool Done(StreamEvent event) = 0;
  // Blocks until the event is done, or the device has failed; status().
  virtual absl::Status Await(StreamEvent event) = 0;
  // The first error of a kernel or copy, which it names. It stays: nothing that the device has
  // computed since counts, and the process has to start anew.
  virtual absl::Status status() const = 0;

  // ---- of flat vectors
  // out = base + scale * (a - b), where base is not null. `out` may be any of the others.
  virtual void AddDifference(size_t count, float scale, const float* a, const float* b,
                             const float* base, float* out) = 0;
  // An optimizer's step; *finite (device memory) is 1, or 0 where not everything that it wrote is
  // finite.
  virtual void Update(const VectorUpdate& update, float* finite) = 0;
  // x *= factor. *finite (device memory), where not null, becomes 0 where a result is not finite,
  // and is left as it is where all are.
  virtual void Scale(size_t count, float factor, float* x, float* finite) = 0;

  // `encoded` = values + residual, as the codec of that format writes `count` of them in bytes, and
  // `residual` = what that loses (common/codec/codec.h): the CPU's bits. What does not fill the
  // last float of `encoded` is anything.
  virtual void Encode(GroupFormat format, size_t count, const float* values, float* residual,
                      float* encoded) = 0;

  // ---- elementwise and by row
  virtual void Fill(size_t count, float value, float* y) = 0;
  virtual void Copy(size_t count, const float* x, float* y) = 0;
  // Those columns of y; its others stay.
  virtual void CopyColumns(const ColumnCopy& shape, const float* x, float* y) = 0;
  // z = x * y; z may be x or y.
  virtual void Multiply(size_t count, const float* x, const float* y, float* z) = 0;
  // Every row of y [rows x columns] = row.
  virtual void FillRows(size_t rows, size_t columns, const float* row, float* y) = 0;
  // y [rows x columns] += row, in every row.
  virtual void AddRows(size_t rows, size_t columns, const float* row, float* y) = 0;
  // sum [columns] = the sum of the rows of x.
  virtual void SumRows(size_t rows, size_t columns, const float* x, float* sum) = 0;

  // ---- products. Factors are rounded to the precision with which the backend was made
  // (precision.h), sums and results are not.
  // c [m x n] = op(a) [m x k] op(b) [k x n], added to c where `accumulate`.
  virtual void Gemm(const GemmShape& shape, Op op_a, const float* a, Op op_b, const float* b,
                    bool accumulate, float* c) = 0;

  // x [batch x input], weight [patch x filters] in (row, column, channel) order, bias [filters] or
  // null. Floats of scratch that either pass wants:
  virtual size_t Conv2dScratch(const Conv2dShape& shape, size_t batch) const = 0;
  virtual void Conv2dForward(const Conv2dShape& shape, size_t batch, const float* x,
                             const float* weight, const float* bias, float* scratch, float* y) = 0;
  // dbias and dx may be null: not wanted.
  virtual void Conv2dBackward(const Conv2dShape& shape, size_t batch, const float* x,
                              const float* weight, const float* dy, float* scratch, float* dweight,
                              float* dbias, float* dx) = 0;

  // The convolution of each channel by itself, in float32: filters are as many as channels, weight
  // [kernel * kernel x channels], bias [channels] or null.
  virtual void DepthwiseForward(const Conv2dShape& shape, size_t batch, const float* x,
                                const float* weight, const float* bias, float* y) = 0;
  // dx may be null.
  virtual void DepthwiseBackward(const Conv2dShape& shape, size_t batch, const float* x,
                                 const float* weight, const float* dy, float* dweight,
                                 float* dx) = 0;

  // ---- pooling
  // winners [batch x output]: which place of its window won, the first of equals; null: not wanted.
  virtual void MaxPoolForward(const PoolShape& shape, size_t batch, const float* x, float* winners,
                              float* y) = 0;
  virtual void MaxPoolBackward(const PoolShape& shape, size_t batch, const float* winners,
                               const float* dy, float* dx) = 0;
  virtual void AvgPoolForward(const PoolShape& shape, size_t batch, const float* x, float* y) = 0;
  virtual void AvgPoolBackward(const PoolShape& shape, size_t batch, const float* dy,
                               float* dx) = 0;

  // ---- activations; y may be x, dx may be dy. NaN stays NaN.
  virtual void ReluForward(size_t count, const float* x, float* y) = 0;
  virtual void ReluBackward(size_t count, const float* y, const float* dy, float* dx) = 0;
  // x Phi(x) with the exact Phi (the error function), Hendrycks and Gimpel 2016.
  virtual void GeluForward(size_t count, const float* x, float* y) = 0;
  virtual void GeluBackward(size_t count, const float* x, const float* dy, float* dx) = 0;
  // x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), the approximation of the same paper.
  virtual void TanhGeluForward(size_t count, const float* x, float* y) = 0;
  virtual void TanhGeluBackward(size_t count, const float* x, const float* dy, float* dx) = 0;
  virtual void TanhForward(size_t count, const float* x, float* y) = 0;
  virtual void TanhBackward(size_t count, const float* y, const float* dy, float* dx) = 0;

  // min(max(x, 0), 6).
  virtual void Relu6Forward(size_t count, const float* x, float* y) = 0;
  virtual void Relu6Backward(size_t count, const float* y, const float* dy, float* dx) = 0;
  // x / (1 + exp(-x)).
  virtual void SiluForward(size_t count, const float* x, float* y) = 0;
  virtual void SiluBackward(size_t count, const float* x, const float* dy, float* dx) = 0;

  // Element i is dropped where word i % 4 of Philox4x32({i / 4, key.stream}, key.key) is below rate
  // * 2^32; else multiplied by 1 / (1 - rate). mask holds the factors. y may be x.
  virtual void DropoutForward(size_t count, float rate, const DropoutKey& key, const float* x,
                              float* mask, float* y) = 0;

  // ---- batch normalisation over the columns of x [rows x columns] (Ioffe and Szegedy 2015)
  // Normalises by the batch's mean and biased variance, which it leaves in `saved` (mean, then 1 /
  // standard deviation). batch_mean and batch_var: for the running statistics, the latter unbiased
  // (as in PyTorch). One row has none: they are the running statistics, which are not read else.
  virtual void BatchNormForward(const BatchNormOptions& options, const BatchNormWeights& weights,
                                const float* x, float* saved, float* batch_mean, float* batch_var,
                                float* y) = 0;
  // By the running statistics.
  virtual void BatchNormInference(const BatchNormOptions& options, const BatchNormWeights& weights,
                                  const float* x, float* y) = 0;
  // dx may be null, or dy.
  virtual void BatchNormBackward(const BatchNormOptions& options, const float* gamma,
                                 const float* x, const float* saved, const float* dy, float* dgamma,
                                 float* dbeta, float* dx) = 0;

  // ---- group normalisation (Wu and He 2018), of which layer normalisation (Ba, Kiros, Hinton
  // 2016) is the case of one group and one pixel. x [batch x pixels x channels]; gamma and beta
  // [channels], beta may be null. Leaves the means and then 1 / standard deviation, by the biased
  // variance, in `saved`: [2 x shape.means()].
  virtual void GroupNormForward(const GroupNormShape& shape, const float* gamma, const float* beta,
                                const float* x, float* saved, float* y) = 0;
  // scratch as large as `saved`. dbeta and dx may be null.
  virtual void GroupNormBackward(const GroupNormShape& shape, const float* gamma, const float* x,
                                 const float* saved, const float* dy, float* scratch, float* dgamma,
                                 float* dbeta, float* dx) = 0;

  // ---- tokens: whole numbers from 0 to the vocabulary - 1
  // y [count x width] = the tokens' rows of weight [vocabulary x width].
  virtual void EmbedForward(const EmbedShape& shape, const float* tokens, const float* weight,
                            float* y) = 0;
  // dweight = for each row the sum of its tokens' rows of dy, in their order; added to dweight
  // where `accumulate`.
  virtual void EmbedBackward(const EmbedShape& shape, const float* tokens, const float* dy,
                             bool accumulate, float* dweight) = 0;

  // ---- attention (Vaswani et al. 2017, equation 1), in parts
  // Turns queries and keys within qkv by their positions (Su et al. 2021, equation 34, with pairs
  // of channels half a head apart); or `back`.
  virtual void Rotate(const AttentionShape& shape, size_t batch, bool back, float* qkv) = 0;
  // p [batch x heads x positions x positions] = softmax(q k^T / sqrt(width)) of what is seen, else
  // 0.
  virtual void AttentionScores(const AttentionShape& shape, size_t batch, const float* qkv,
                               float* p) = 0;
  // y [batch x positions x channels] = p v.
  virtual void AttentionMix(const AttentionShape& shape, size_t batch, const float* p,
                            const float* qkv, float* y) = 0;
  // dp, of which what is not seen is anything, and the values' part of dqkv.
  virtual void AttentionMixBackward(const AttentionShape& shape, size_t batch, const float* p,
                                    const float* qkv, const float* dy, float* dp, float* dqkv) = 0;
  // The queries' and keys' parts of dqkv. Writes over dp.
  virtual void AttentionScoresBackward(const AttentionShape& shape, size_t batch, const float* p,
                                       const float* qkv, float* dp, float* dqkv) = 0;

  // ---- losses. sum: device memory. dscores: gradient of the MEAN loss; null: not wanted. Labels
  // are in range.
  // scores [rows x classes]. Right: the highest score, the first of equals. The label of class c is
  // 1 - smoothing + smoothing / classes, the others' smoothing / classes (Szegedy et al. 2016,
  // section 7).
  virtual void SoftmaxCrossEntropy(const SoftmaxLossShape& shape, const float* scores,
                                   const float* labels, LossSum* sum, float* dscores) = 0;
  // scores [batch]; label 1, or 0 or -1 for the other class. Right: the score's sign.
  virtual void Logistic(size_t batch, const float* scores, const float* labels, LossSum* sum,
                        float* dscores) = 0;
  // 1/2 (score - label)^2; nothing counts as right.
  virtual void Squared(size_t batch, const float* scores, const float* labels, LossSum* sum,
                       float* dscores) = 0;

 protected:
  friend struct DeviceFree;
  friend struct HostUnpin;
  virtual void Free(float* data) = 0;
  virtual void Unpin(float* host) {}
};

inline void DeviceFree::operator()(float* data) const { backend->Free(data); }
inline void HostUnpin::operator()(float* host) const { backend->Unpin(host); }

}  // namespace leeway
