// Describes a run on Kubernetes as manifests for `kubectl apply`, which `leeway kubernetes` prints.
// They are made from the templates in deploy/kubernetes/templates: one template for each shape, and
// templates that all shapes share.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/security/role.h"
#include "launcher/kubernetes/run_secrets.h"
#include "launcher/kubernetes/shape.h"

namespace leeway {

struct KubernetesRun {
  const Shape* shape = nullptr;
  std::string name;
  // The namespace. If empty, kubectl's current namespace is used.
  std::string space;
  // The images of the servers and of the workers.
  std::string image;
  std::string worker_image;

  // The job as YAML, and the numbers in the job that the manifests need.
  std::string job;
  uint32_t servers = 1;
  uint32_t replicas = 1;
  uint32_t workers = 1;
  // Whether each worker holds a part of the blocks and answers the others. `servers` is then 1,
  // the coordinator, which holds none.
  bool workers_hold_blocks = false;
  // The memory that a container requests, such as "512Mi", and its processors.
  std::string server_memory;
  std::string worker_memory;
  // The space on the node's disk for copies of a store's data and for /tmp. If empty, the cluster's
  // default applies.
  std::string worker_storage;
  uint32_t worker_processors = 1;
  uint32_t gpus = 0;

  // A program that runs instead of leeway-worker: its command line, further environment variables,
  // and its files by name.
  std::vector<std::string> program;
  std::vector<std::pair<std::string, std::string>> program_environment;
  std::map<std::string, std::string> program_files;

  // The size and class of the claim for the run folder. An empty class is the cluster's default.
  std::string storage = "10Gi";
  std::string storage_class;
  std::string access_mode = "ReadWriteMany";
  // An object store that replaces the claim: s3://BUCKET/PREFIX, and a Secret with the store's
  // variables.
  std::string store;
  std::string store_secret;
  uint32_t store_port = 443;
  // A claim with the training data, or s3://BUCKET/PREFIX with the same Secret. If both are empty,
  // the data of the image is used.
  std::string data_claim;
  std::string data_store;

  // The beginning of the Secrets' names. If empty, there are no Secrets, and traffic is plain text.
  std::string secrets = "leeway";
  // The keys of the run. If present, the Secrets are printed, too.
  std::optional<RunSecrets> keys;

  std::string queue;
  bool resume = false;
  bool restart_job = false;
  bool alerts = false;

  // The role in a worker's certificate.
  v1::Role worker_role() const { return workers_hold_blocks ? v1::ROLE_PEER : v1::ROLE_WORKER; }
};

// Returns INVALID_ARGUMENT, naming the flag, if Kubernetes would refuse a name, an image or a
// quantity, or if the shape does not support an option.
absl::Status CheckRun(const KubernetesRun& run);
// Returns the manifests. The run must have passed CheckRun.
absl::StatusOr<std::string> RunManifests(const KubernetesRun& run);

}  // namespace leeway
