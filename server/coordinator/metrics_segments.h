// Writes the metrics to storage in which files cannot be appended to. The lines are in segments:
// metrics/000000.jsonl and so on.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "common/storage/segments.h"
#include "server/coordinator/metrics_log.h"

namespace leeway {

// Not thread-safe.
class MetricsSegments final : public MetricsLog {
 public:
  static absl::StatusOr<std::unique_ptr<MetricsLog>> Open(const std::string& folder);

  absl::Status Append(const std::string& lines) override;
  absl::Status Tick() override;
  absl::Status Keep() override;

 private:
  explicit MetricsSegments(std::unique_ptr<SegmentWriter> segments)
      : segments_(std::move(segments)) {}

  const std::unique_ptr<SegmentWriter> segments_;
};

}  // namespace leeway
