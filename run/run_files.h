// The names of the files in a run folder, which also contains the folders checkpoints/ and logs/.
#pragma once

namespace leeway {

inline constexpr char kJobFile[] = "job.yaml";
inline constexpr char kMetricsFile[] = "metrics.jsonl";
// In an object store this folder of segments (common/storage/segments.h) replaces kMetricsFile.
inline constexpr char kMetricsFolder[] = "metrics";
inline constexpr char kModelFile[] = "model.safetensors";
// The moving average of the model's weights, if the job keeps one.
inline constexpr char kAverageModelFile[] = "model-average.safetensors";
inline constexpr char kSummaryFile[] = "summary.json";

}  // namespace leeway
