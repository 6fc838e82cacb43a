// Files in a run folder; checkpoints/ and logs/ are beside them.
#pragma once

namespace leeway {

inline constexpr char kJobFile[] = "job.yaml";
inline constexpr char kMetricsFile[] = "metrics.jsonl";
// Its place in an object store: a folder of segments (common/storage/segments.h).
inline constexpr char kMetricsFolder[] = "metrics";
inline constexpr char kModelFile[] = "model.safetensors";
// The moving average of its weights, where the job keeps one.
inline constexpr char kAverageModelFile[] = "model-average.safetensors";
inline constexpr char kSummaryFile[] = "summary.json";

}  // namespace leeway
