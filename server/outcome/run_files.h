// The files in a run folder. The folders checkpoints/ and logs/ are beside them.
#pragma once

namespace leeway {

inline constexpr char kJobFile[] = "job.yaml";
inline constexpr char kMetricsFile[] = "metrics.jsonl";
// In an object store: a folder of segments (common/storage/segments.h) in place of the file.
inline constexpr char kMetricsFolder[] = "metrics";
inline constexpr char kModelFile[] = "model.safetensors";
// The moving average of the model's weights, if the job keeps one.
inline constexpr char kAverageModelFile[] = "model-average.safetensors";
inline constexpr char kSummaryFile[] = "summary.json";

}  // namespace leeway
