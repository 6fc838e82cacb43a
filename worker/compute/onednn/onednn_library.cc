// Each thread of the pool computes a slice of a convolution's batch by itself. So no OpenMP threads
// run beside the pool, and the slices' gradients of the weights are added in order.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/buffer.h"
#include "common/mutex.h"
#include "worker/compute/onednn/convolution_slice.h"
#include "worker/compute/onednn/cpu_library.h"

namespace leeway {
namespace {

// The limit on the number of slices that are kept. A job has a few slices for each convolution and
// thread. At the limit, all slices are dropped.
constexpr size_t kSlicesMax = 4096;

const char* IsaName(dnnl::cpu_isa isa) {
  switch (isa) {
    case dnnl::cpu_isa::sse41:
      return "sse41";
    case dnnl::cpu_isa::avx:
      return "avx";
    case dnnl::cpu_isa::avx2:
      return "avx2";
    case dnnl::cpu_isa::avx2_vnni:
      return "avx2_vnni";
    case dnnl::cpu_isa::avx512_core:
      return "avx512_core";
    case dnnl::cpu_isa::avx512_core_vnni:
      return "avx512_core_vnni";
    case dnnl::cpu_isa::avx512_core_bf16:
      return "avx512_core_bf16";
    case dnnl::cpu_isa::avx512_core_amx:
      return "avx512_core_amx";
    default:
      return "other instructions";
  }
}

// The key of a slice: a shape, the number of examples of the slice, and the number of the part.
using Key = std::array<uint64_t, 10>;

Key KeyOf(const GroupedShape& shape, size_t examples, uint32_t part) {
  const Conv2dShape& conv = shape.conv;
  return {conv.input.height, conv.input.width, conv.input.channels, conv.filters, conv.kernel,
          conv.stride,       conv.padding,     shape.groups,        examples,     part};
}

struct PartMemory {
  FloatBuffer scratch;
  // The gradient of the weights. The first part uses the caller's memory instead of this buffer.
  FloatBuffer dweight;
};

void Grow(FloatBuffer& buffer, size_t floats) {
  if (buffer.size() < floats) buffer = FloatBuffer(floats);
}

class OnednnLibrary final : public CpuLibrary {
 public:
  explicit OnednnLibrary(ThreadPool& pool) : pool_(pool), memory_(pool.threads()) {}

  std::string about() const override {
    const dnnl_version_t& version = *dnnl_version();
    return absl::StrCat("oneDNN ", version.major, ".", version.minor, ".", version.patch, " with ",
                        IsaName(dnnl::get_effective_cpu_isa()));
  }

  void Multiply(const GemmShape& shape, Op op_a, const float* a, Op op_b, const float* b,
                bool accumulate, float* c) override EXCLUDES(mutex_) {
    StayOneThread();
    const auto letter = [](Op op) { return op == Op::kAsIs ? 'N' : 'T'; };
    const auto stride = [](size_t given, size_t packed) {
      return static_cast<dnnl::memory::dim>(given == 0 ? packed : given);
    };
    const auto code = dnnl::sgemm(
        letter(op_a), letter(op_b), static_cast<dnnl::memory::dim>(shape.m),
        static_cast<dnnl::memory::dim>(shape.n), static_cast<dnnl::memory::dim>(shape.k), 1.0f, a,
        stride(shape.a_stride, op_a == Op::kAsIs ? shape.k : shape.m), b,
        stride(shape.b_stride, op_b == Op::kAsIs ? shape.n : shape.k), accumulate ? 1.0f : 0.0f, c,
        stride(shape.c_stride, shape.n));
    if (code != dnnl::status::success) Fail("a matrix product", "it ran out of memory");
  }

  bool Takes(const GroupedShape& shape, size_t batch) override {
    StayOneThread();
    const uint32_t parts = pool_.Parts(batch, 1);
    if (slices_.size() + parts > kSlicesMax) slices_.clear();
    for (uint32_t part = 0; part < parts; ++part) {
      if (SliceOf(shape, Examples(batch, parts, part), part) == nullptr) return false;
    }
    return true;
  }

  void ConvolveForward(const GroupedShape& shape, size_t batch, const float* x, const float* weight,
                       const float* bias, float* y) override {
    Run(shape, batch, [&, outputs = shape.conv.output().elements()](const Part& part) {
      part.slice.Forward(x + part.begin * shape.conv.input.elements(), weight, bias,
                         part.memory.scratch.data(), y + part.begin * outputs);
    });
  }

  void ConvolveBackward(const GroupedShape& shape, size_t batch, const float* x,
                        const float* weight, const float* dy, float* dweight, float* dx) override {
    const size_t inputs = shape.conv.input.elements();
    const size_t outputs = shape.conv.output().elements();
    const size_t weights = shape.conv.patch() / shape.groups * shape.conv.filters;
    const uint32_t parts = pool_.Parts(batch, 1);
    for (uint32_t part = 1; part < parts; ++part) Grow(memory_[part].dweight, weights);
    Run(shape, batch, [&](const Part& part) {
      part.slice.Backward(x + part.begin * inputs, weight, dy + part.begin * outputs,
                          part.memory.scratch.data(),
                          part.begin == 0 ? dweight : part.memory.dweight.data(),
                          dx == nullptr ? nullptr : dx + part.begin * inputs);
    });
    for (uint32_t part = 1; part < parts; ++part) {
      const float* const more = memory_[part].dweight.data();
      for (size_t i = 0; i < weights; ++i) dweight[i] += more[i];
    }
  }

  absl::Status status() const override EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return status_;
  }

 private:
  struct Part {
    size_t begin;
    ConvolutionSlice& slice;
    PartMemory& memory;
  };

  // Returns the number of examples of part `part`, as ThreadPool::For divides the batch.
  static size_t Examples(size_t batch, uint32_t parts, uint32_t part) {
    return batch * (part + 1) / parts - batch * part / parts;
  }

  // Returns the slice, or null if the library does not compute the convolution.
  ConvolutionSlice* SliceOf(const GroupedShape& shape, size_t examples, uint32_t part) {
    const Key key = KeyOf(shape, examples, part);
    auto found = slices_.find(key);
    if (found == slices_.end()) {
      found = slices_.emplace(key, ConvolutionSlice::Make(shape, examples)).first;
    }
    return found->second.get();
  }

  // Runs `work` for all parts at the same time. Takes() has already made their slices.
  template <typename Work>
  void Run(const GroupedShape& shape, size_t batch, Work work) {
    StayOneThread();
    const uint32_t parts = pool_.Parts(batch, 1);
    std::vector<ConvolutionSlice*> slices(parts);
    for (uint32_t part = 0; part < parts; ++part) {
      slices[part] = SliceOf(shape, Examples(batch, parts, part), part);
      Grow(memory_[part].scratch, slices[part]->scratch());
    }
    pool_.For(batch, 1, [&](size_t begin, size_t, uint32_t part) {
      StayOneThread();
      try {
        work(Part{begin, *slices[part], memory_[part]});
      } catch (const dnnl::error& error) {
        Fail("a convolution", error.message);
      }
    });
  }

  void Fail(absl::string_view what, absl::string_view why) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (!status_.ok()) return;
    status_ = absl::InternalError(absl::StrCat(
        what, " by ", about(), ": ", why, "; set LEEWAY_ONEDNN=0 to compute without the library"));
  }

  ThreadPool& pool_;
  std::map<Key, std::unique_ptr<ConvolutionSlice>> slices_;
  std::vector<PartMemory> memory_;
  mutable Mutex mutex_;
  absl::Status status_ GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<CpuLibrary> MakeCpuLibrary(ThreadPool& pool) {
  const char* const wanted = std::getenv("LEEWAY_ONEDNN");
  if (wanted != nullptr && std::string_view(wanted) == "0") return nullptr;
  return std::make_unique<OnednnLibrary>(pool);
}

}  // namespace leeway
