// Describes a run on Kubernetes as the objects that `kubectl apply` takes: what `leeway kubernetes`
// prints. The objects are templates in deploy/kubernetes/templates: one for each shape, and those
// that all shapes share.
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
  // The namespace; if it is empty, kubectl's own.
  std::string space;
  // The images of the servers and of the workers.
  std::string image;
  std::string worker_image;

  // The job as YAML, and what the manifests need of it.
  std::string job;
  uint32_t servers = 1;
  uint32_t replicas = 1;
  uint32_t workers = 1;
  // What a container requests: bytes such as "512Mi", and processors.
  std::string server_memory;
  std::string worker_memory;
  uint32_t worker_processors = 1;
  uint32_t gpus = 0;

  // A program instead of leeway-worker: its command line, further environment variables, and its
  // files by name.
  std::vector<std::string> program;
  std::vector<std::pair<std::string, std::string>> program_environment;
  std::map<std::string, std::string> program_files;

  // The claim for the run folder. With an empty class the cluster's default is used.
  std::string storage = "10Gi";
  std::string storage_class;
  std::string access_mode = "ReadWriteMany";
  // An object store instead of a claim: s3://BUCKET/PREFIX, and a Secret with the store's
  // variables.
  std::string store;
  std::string store_secret;
  uint32_t store_port = 443;
  // A claim with the training data, or s3://BUCKET/PREFIX with the same Secret. If both are empty,
  // the data of the image is used.
  std::string data_claim;
  std::string data_store;

  // The beginning of the Secrets' names; if it is empty, traffic is plain text.
  std::string secrets = "leeway";
  // If present, the Secrets are printed, too.
  std::optional<RunSecrets> keys;

  std::string queue;
  bool resume = false;
  bool restart_job = false;
  bool alerts = false;
};

// INVALID_ARGUMENT, naming the flag: Kubernetes would refuse a name, an image or a quantity, or the
// shape does not support something.
absl::Status CheckRun(const KubernetesRun& run);
// The run must have passed CheckRun.
absl::StatusOr<std::string> RunManifests(const KubernetesRun& run);

}  // namespace leeway
