// Files in a run folder; checkpoints/ and logs/ are beside them.
#pragma once

namespace leeway {

inline constexpr char kJobFile[] = "job.yaml";
inline constexpr char kMetricsFile[] = "metrics.jsonl";
inline constexpr char kModelFile[] = "model.safetensors";
inline constexpr char kSummaryFile[] = "summary.json";

}  // namespace leeway
