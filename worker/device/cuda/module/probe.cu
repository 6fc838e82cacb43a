// Every working nvcc compiles this file. cmake compiles it to find out if nvcc works.
#include <cuda_runtime_api.h>

__global__ void Nothing() {}
