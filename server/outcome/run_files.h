// Files in a run folder; checkpoints/ and logs/ are beside them.
#pragma once

namespace leeway {

inline constexpr char kJobFile[] = "job.yaml";
inline constexpr char kMetricsFile[] = "metrics.jsonl";
inline constexpr char kModelFile[] = "model.safetensors";
// The moving average of its weights, where the job keeps one.
inline constexpr char kAverageModelFile[] = "model-average.safetensors";
inline constexpr char kSummaryFile[] = "summary.json";

}  // namespace leeway
