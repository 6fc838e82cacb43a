// Functions that a GPU's kernels call, too: nvcc compiles them for both sides, other compilers for
// the host.
#pragma once

#if defined(__CUDACC__)
#define LEEWAY_HOST_DEVICE __host__ __device__
#else
#define LEEWAY_HOST_DEVICE
#endif
