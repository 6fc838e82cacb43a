#include "bench/base/bench_job.h"

#include "absl/strings/str_cat.h"

namespace leeway {
namespace {

// Returns the update in YAML. Its learning rate is so small that the weights hardly change.
std::string UpdateYaml(const std::string& update) {
  if (update == "adam") return "{type: adam, learning_rate: 0.000001}";
  const char* momentum = update == "momentum" ? ", momentum: 0.9" : "";
  return absl::StrCat("{type: sgd, learning_rate: 0.000001", momentum, "}");
}

}  // namespace

std::string BenchJobYaml(const BenchJobOptions& options) {
  const char* staleness = options.mode == "bounded" ? ", staleness: 2" : "";
  const std::string blocks =
      options.block_bytes > 0 ? absl::StrCat(", block_bytes: ", options.block_bytes) : "";
  return absl::StrCat(
      R"(apiVersion: leeway/v1
kind: TrainingJob
metadata: {name: bench}
model: {layers: [{dense: {units: 2}}], loss: softmax_cross_entropy}
data: {train: {type: generator, examples: 2, shape: [1]}, batch_size: 1}
exchange: {type: gradient}
stop: {clocks: 1000000000}
limits: {start_seconds: 600, lease_seconds: 60}
)",
      "consistency: {mode: ", options.mode, staleness, "}\nupdate: ", UpdateYaml(options.update),
      "\nservers: {count: ", options.servers, blocks, "}\nworkers: {count: ", options.workers,
      "}\ntransport: {type: ", NameOf(options.wire),
      "}\ncompression: {contributions: {type: ", options.contributions,
      "}, weights: {type: ", options.weights, "}}\n");
}

}  // namespace leeway
