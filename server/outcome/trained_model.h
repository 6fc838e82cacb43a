// A model as a checkpoint holds it: to export, to evaluate.
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
  // The checkpoint's folder.
  std::string folder;
  v1::CheckpointManifest manifest;
  FloatBuffer weights;
  // Their moving average, where the job keeps one.
  std::optional<FloatBuffer> average;
  // By rank: so many of its clocks are in all of the weights.
  std::vector<uint64_t> clocks;
  // Newer checkpoints that are damaged, and why: the model is older than it should be.
  std::vector<std::string> passed_over;

  // The weights that the job evaluates.
  std::span<const float> Evaluated() const;
  // FAILED_PRECONDITION where there is no average.
  absl::StatusOr<std::span<const float>> Of(v1::EvaluatedWeights which) const;
};

// `path` is a checkpoint's folder or a run's, also s3://BUCKET/PREFIX; of a run, the checkpoint at
// `clock`, which must verify, or the newest one that does. NOT_FOUND if there is none.
absl::StatusOr<TrainedModel> LoadTrainedModel(const std::string& path,
                                              std::optional<uint64_t> clock = std::nullopt);

// What a file of the model says of where it comes from; `format` names its own.
std::map<std::string, std::string> ExportMetadata(const TrainedModel& model,
                                                  std::span<const float> weights,
                                                  const std::string& format);

// Writes `weights`, which are its own or their average, as safetensors with the layers' names.
absl::Status ExportModel(const TrainedModel& model, std::span<const float> weights,
                         const std::string& path, WriteTo to = WriteTo::kRegularFile);

}  // namespace leeway
