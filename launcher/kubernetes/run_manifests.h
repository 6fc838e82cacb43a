// A run on Kubernetes, as the objects that `kubectl apply` takes: what `leeway kubernetes` prints.
// The objects are templates in deploy/kubernetes/templates: one for each shape, and those that all
// shapes share.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/kubernetes/run_secrets.h"
#include "launcher/kubernetes/shape.h"

namespace leeway {

struct KubernetesRun {
  const Shape* shape = nullptr;
  std::string name;
  // Empty: that of kubectl.
  std::string space;
  // Of the servers, and of the workers.
  std::string image;
  std::string worker_image;

  // The job as YAML, and what the manifests take from it.
  std::string job;
  uint32_t servers = 1;
  uint32_t replicas = 1;
  uint32_t workers = 1;
  // What a container asks for: "512Mi", processors.
  std::string server_memory;
  std::string worker_memory;
  // Of the node's disk, for copies of a store's data and for /tmp; empty: what the cluster gives.
  std::string worker_storage;
  uint32_t worker_processors = 1;
  uint32_t gpus = 0;

  // Instead of leeway-worker: its words, the variables that it gets besides, and its files by their
  // names.
  std::vector<std::string> program;
  std::vector<std::pair<std::string, std::string>> program_environment;
  std::map<std::string, std::string> program_files;

  // Of the claim for the run folder; the class may be empty: the cluster's own.
  std::string storage = "10Gi";
  std::string storage_class;
  std::string access_mode = "ReadWriteMany";
  // In place of a claim: s3://BUCKET/PREFIX, with a Secret of the store's variables.
  std::string store;
  std::string store_secret;
  uint32_t store_port = 443;
  // A claim with the training data, or s3://BUCKET/PREFIX by the same Secret; both empty: those of
  // the image.
  std::string data_claim;
  std::string data_store;

  // What the names of the Secrets begin with; empty: plain text.
  std::string secrets = "leeway";
  // Printed too.
  std::optional<RunSecrets> keys;

  std::string queue;
  bool resume = false;
  bool restart_job = false;
  bool alerts = false;
};

// INVALID_ARGUMENT names the flag: a name, an image or a quantity that Kubernetes refuses, or what
// the shape cannot have.
absl::Status CheckRun(const KubernetesRun& run);
// Of a run that passed.
absl::StatusOr<std::string> RunManifests(const KubernetesRun& run);

}  // namespace leeway
