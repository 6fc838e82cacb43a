// Marks functions that GPU kernels also call. nvcc compiles such a function for the host and for
// the GPU, and other compilers compile it for the host only.
#pragma once

#if defined(__CUDACC__)
#define LEEWAY_HOST_DEVICE __host__ __device__
#else
#define LEEWAY_HOST_DEVICE
#endif

// Put this macro before a loop. When the loop is compiled for a GPU, the compiler unrolls this
// number of iterations.
#if defined(__CUDA_ARCH__)
#define LEEWAY_PRAGMA(text) _Pragma(#text)
#define LEEWAY_UNROLL(passes) LEEWAY_PRAGMA(unroll passes)
#else
#define LEEWAY_UNROLL(passes)
#endif
