#include "tests/worker/device/modules/fake_cudnn.h"

#include "tests/worker/device/cuda/host_convolver.h"

// Types that cuDNN only declares.
struct cudnnTensorStruct {
  int n, c, h, w;
};
struct cudnnFilterStruct {
  int k, c, h, w;
};
struct cudnnConvolutionStruct {
  int padding, stride;
  cudnnMathType_t math;
};

namespace leeway::testing {
namespace {

FakeCudnn* fake = nullptr;

template <typename T>
cudnnStatus_t Make(T** made) {
  *made = new T();
  ++fake->alive;
  return CUDNN_STATUS_SUCCESS;
}
template <typename T>
cudnnStatus_t Destroy(T* made) {
  delete made;
  --fake->alive;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t Create(cudnnHandle_t* handle) {
  if (fake->create != CUDNN_STATUS_SUCCESS) return fake->create;
  *handle = reinterpret_cast<cudnnHandle_t>(fake);
  ++fake->alive;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t DestroyHandle(cudnnHandle_t) {
  --fake->alive;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t SetTensor(cudnnTensorDescriptor_t tensor, cudnnTensorFormat_t format,
                        cudnnDataType_t type, int n, int c, int h, int w) {
  if (format != CUDNN_TENSOR_NHWC || type != CUDNN_DATA_FLOAT) return CUDNN_STATUS_BAD_PARAM;
  *tensor = {n, c, h, w};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t SetFilter(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                        cudnnTensorFormat_t format, int k, int c, int h, int w) {
  if (format != CUDNN_TENSOR_NHWC || type != CUDNN_DATA_FLOAT) return CUDNN_STATUS_BAD_PARAM;
  *filter = {k, c, h, w};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t SetConvolution(cudnnConvolutionDescriptor_t convolution, int pad_h, int pad_w, int u,
                             int v, int dilation_h, int dilation_w, cudnnConvolutionMode_t mode,
                             cudnnDataType_t type) {
  const bool square = pad_h == pad_w && u == v && dilation_h == 1 && dilation_w == 1;
  if (!square || mode != CUDNN_CROSS_CORRELATION || type != CUDNN_DATA_FLOAT) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  *convolution = {pad_h, u, CUDNN_DEFAULT_MATH};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t SetMath(cudnnConvolutionDescriptor_t convolution, cudnnMathType_t math) {
  convolution->math = math;
  return CUDNN_STATUS_SUCCESS;
}

// Whether the sizes of y follow from the other sizes.
bool Agree(cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w, cudnnConvolutionDescriptor_t c,
           cudnnTensorDescriptor_t y) {
  const auto side = [&](int from) { return (from + 2 * c->padding - w->h) / c->stride + 1; };
  return x->n == y->n && x->c == w->c && y->c == w->k && w->h == w->w && y->h == side(x->h) &&
         y->w == side(x->w);
}

template <typename Perf>
cudnnStatus_t Offer(bool agree, int most, int* count, Perf* offers) {
  ++fake->asked;
  if (!agree) return CUDNN_STATUS_BAD_PARAM;
  if (fake->ask != CUDNN_STATUS_SUCCESS) return fake->ask;
  *count = 0;
  for (const FakeCudnn::Offer& offer : fake->offers) {
    if (*count == most) break;
    Perf& perf = offers[(*count)++];
    perf.algo = static_cast<decltype(perf.algo)>(offer.algorithm);
    perf.status = offer.status;
    perf.determinism = offer.determinism;
    perf.mathType = offer.math;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t Size(int algorithm, size_t* bytes) {
  for (const FakeCudnn::Offer& offer : fake->offers) {
    if (offer.algorithm == algorithm) *bytes = offer.workspace;
  }
  return fake->size;
}

cudnnStatus_t Run(cuda::ConvolutionPass pass, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                  cudnnConvolutionDescriptor_t c, cudnnTensorDescriptor_t y, int algorithm,
                  size_t workspace, const void* alpha, const void* beta, const void* a,
                  const void* b, void* out) {
  if (fake->run != CUDNN_STATUS_SUCCESS) return fake->run;
  if (!Agree(x, w, c, y)) return CUDNN_STATUS_BAD_PARAM;
  if (*static_cast<const float*>(alpha) != 1 || *static_cast<const float*>(beta) != 0) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  fake->ran.push_back(algorithm);
  fake->workspace_given = workspace;
  fake->all_fma = fake->all_fma && c->math == CUDNN_FMA_MATH;
  const auto number = [](int value) { return static_cast<uint32_t>(value); };
  const Conv2dShape shape{{number(x->h), number(x->w), number(x->c)},
                          number(w->k),
                          number(w->h),
                          number(c->stride),
                          number(c->padding)};
  HostConvolve({pass, shape, static_cast<size_t>(x->n)}, static_cast<const float*>(a),
               static_cast<const float*>(b), static_cast<float*>(out));
  return CUDNN_STATUS_SUCCESS;
}

void SetDescriptors(cuda::Cudnn& cudnn) {
  cudnn.create_tensor = Make<cudnnTensorStruct>;
  cudnn.set_tensor = SetTensor;
  cudnn.destroy_tensor = Destroy<cudnnTensorStruct>;
  cudnn.create_filter = Make<cudnnFilterStruct>;
  cudnn.set_filter = SetFilter;
  cudnn.destroy_filter = Destroy<cudnnFilterStruct>;
  cudnn.create_convolution = Make<cudnnConvolutionStruct>;
  cudnn.set_convolution = SetConvolution;
  cudnn.set_math = SetMath;
  cudnn.destroy_convolution = Destroy<cudnnConvolutionStruct>;
}

void SetForward(cuda::Cudnn& cudnn) {
  cudnn.forward_algorithms = [](auto, auto x, auto w, auto c, auto y, int most, int* count,
                                auto* offers) {
    return Offer(Agree(x, w, c, y), most, count, offers);
  };
  cudnn.forward_workspace = [](auto, auto, auto, auto, auto, auto algorithm, size_t* bytes) {
    return Size(algorithm, bytes);
  };
  cudnn.forward = [](auto, const void* alpha, auto x, const void* a, auto w, const void* b, auto c,
                     auto algorithm, void*, size_t bytes, const void* beta, auto y, void* out) {
    return Run(cuda::ConvolutionPass::kForward, x, w, c, y, algorithm, bytes, alpha, beta, a, b,
               out);
  };
}

void SetData(cuda::Cudnn& cudnn) {
  cudnn.data_algorithms = [](auto, auto w, auto y, auto c, auto x, int most, int* count,
                             auto* offers) {
    return Offer(Agree(x, w, c, y), most, count, offers);
  };
  cudnn.data_workspace = [](auto, auto, auto, auto, auto, auto algorithm, size_t* bytes) {
    return Size(algorithm, bytes);
  };
  cudnn.data = [](auto, const void* alpha, auto w, const void* filters, auto y, const void* dy,
                  auto c, auto algorithm, void*, size_t bytes, const void* beta, auto x,
                  void* out) {
    return Run(cuda::ConvolutionPass::kData, x, w, c, y, algorithm, bytes, alpha, beta, dy, filters,
               out);
  };
}

void SetFilters(cuda::Cudnn& cudnn) {
  cudnn.filter_algorithms = [](auto, auto x, auto y, auto c, auto w, int most, int* count,
                               auto* offers) {
    return Offer(Agree(x, w, c, y), most, count, offers);
  };
  cudnn.filter_workspace = [](auto, auto, auto, auto, auto, auto algorithm, size_t* bytes) {
    return Size(algorithm, bytes);
  };
  cudnn.filter = [](auto, const void* alpha, auto x, const void* a, auto y, const void* dy, auto c,
                    auto algorithm, void*, size_t bytes, const void* beta, auto w, void* out) {
    return Run(cuda::ConvolutionPass::kFilters, x, w, c, y, algorithm, bytes, alpha, beta, a, dy,
               out);
  };
}

}  // namespace

cuda::Cudnn MakeFakeCudnn(FakeCudnn& of) {
  fake = &of;
  cuda::Cudnn cudnn;
  cudnn.version = []() -> size_t { return 91900; };
  cudnn.cudart_version = []() -> size_t { return 13000; };
  cudnn.describe = [](cudnnStatus_t) { return "a fault"; };
  cudnn.create = Create;
  cudnn.destroy = DestroyHandle;
  cudnn.set_stream = [](auto, auto) { return CUDNN_STATUS_SUCCESS; };
  SetDescriptors(cudnn);
  SetForward(cudnn);
  SetData(cudnn);
  SetFilters(cudnn);
  return cudnn;
}

}  // namespace leeway::testing
