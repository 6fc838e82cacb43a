// Marks functions that GPU kernels also call: nvcc compiles them for both sides, other compilers
// for the host only.
#pragma once

#if defined(__CUDACC__)
#define LEEWAY_HOST_DEVICE __host__ __device__
#else
#define LEEWAY_HOST_DEVICE
#endif

// Goes before a loop. For a GPU the compiler unrolls this number of its passes.
#if defined(__CUDA_ARCH__)
#define LEEWAY_PRAGMA(text) _Pragma(#text)
#define LEEWAY_UNROLL(passes) LEEWAY_PRAGMA(unroll passes)
#else
#define LEEWAY_UNROLL(passes)
#endif
