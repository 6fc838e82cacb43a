// Functions that a GPU's kernels call, too: nvcc compiles them for both sides, other compilers for
// the host.
#pragma once

#if defined(__CUDACC__)
#define LEEWAY_HOST_DEVICE __host__ __device__
#else
#define LEEWAY_HOST_DEVICE
#endif

// Before a loop: a GPU has so many of its passes under way at once.
#if defined(__CUDA_ARCH__)
#define LEEWAY_PRAGMA(text) _Pragma(#text)
#define LEEWAY_UNROLL(passes) LEEWAY_PRAGMA(unroll passes)
#else
#define LEEWAY_UNROLL(passes)
#endif
