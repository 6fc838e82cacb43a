// A model that was loaded from a checkpoint, for export and evaluation.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/buffer.h"
#include "common/files/files.h"
#include "leeway/v1/checkpoint.pb.h"

namespace leeway {

struct TrainedModel {
  // The folder of the checkpoint.
  std::string folder;
  v1::CheckpointManifest manifest;
  FloatBuffer weights;
  // The moving average of the weights, if the job keeps one.
  std::optional<FloatBuffer> average;
  // By rank: how many of the rank's clocks are included in every block of the weights.
  std::vector<uint64_t> clocks;
  // The newer checkpoints that are damaged, with the reasons. If there are any, the model is older
  // than it should be.
  std::vector<std::string> passed_over;

  // Returns what the job evaluates: the weights or their average.
  std::span<const float> Evaluated() const;
  // Returns the weights or their average. Returns FAILED_PRECONDITION if the model has no average.
  absl::StatusOr<std::span<const float>> Of(v1::EvaluatedWeights which) const;
};

// Loads a model. `path` is the folder of a checkpoint or of a run, or s3://BUCKET/PREFIX. From a
// run the function loads the checkpoint at `clock`, which must be valid. Without `clock` it loads
// the newest valid checkpoint. Returns NOT_FOUND if the run has no such checkpoint.
absl::StatusOr<TrainedModel> LoadTrainedModel(const std::string& path,
                                              std::optional<uint64_t> clock = std::nullopt);

// Returns the metadata that tells where an exported file comes from. `format` is the name of the
// file format.
std::map<std::string, std::string> ExportMetadata(const TrainedModel& model,
                                                  std::span<const float> weights,
                                                  const std::string& format);

// Writes `weights`, the model's weights or their average, as safetensors with the layers' names.
absl::Status ExportModel(const TrainedModel& model, std::span<const float> weights,
                         const std::string& path, WriteTo to = WriteTo::kRegularFile);

}  // namespace leeway
