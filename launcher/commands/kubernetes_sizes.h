// What the pods of deploy/kubernetes want, as a component for kustomize.
#pragma once

#include <cstdint>
#include <string>

namespace leeway {

struct PodSizes {
  uint32_t servers = 1;
  // Of each block, at least 1.
  uint32_t replicas = 1;
  uint32_t workers = 1;
  // Of a container: memory that the job itself takes, besides what the process has anyway.
  uint64_t server_bytes = 0;
  uint64_t worker_bytes = 0;
  // Processors that a worker computes with.
  uint32_t worker_threads = 1;
  // A worker may compute on a GPU.
  bool on_gpu = false;
};

// A Component that sets numbers of pods, requests and limits, and how many servers a drain may take
// at a time, in every shape of deploy/kubernetes: those that an overlay does not have are passed
// over. A container gets a quarter more memory than its job and its process take, in steps of 64
// MiB.
std::string KubernetesSizes(const PodSizes& sizes);

}  // namespace leeway
