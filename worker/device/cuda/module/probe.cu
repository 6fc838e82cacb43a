// What a working nvcc compiles: cmake asks before it counts on one.
#include <cuda_runtime_api.h>

__global__ void Nothing() {}
