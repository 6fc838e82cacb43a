// A source that every working nvcc compiles: cmake tries it before it relies on nvcc.
#include <cuda_runtime_api.h>

__global__ void Nothing() {}
