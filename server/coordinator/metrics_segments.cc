#include "server/coordinator/metrics_segments.h"

#include "common/status.h"

namespace leeway {
namespace {

// A bucket that does not exist any more counts as a removed folder.
absl::Status AsGone(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) ? absl::NotFoundError(status.message()) : status;
}

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsLog>> MetricsSegments::Open(const std::string& folder) {
  ASSIGN_OR_RETURN(std::unique_ptr<SegmentWriter> segments,
                   SegmentWriter::Open(folder, {.extension = "jsonl"}));
  return std::unique_ptr<MetricsLog>(new MetricsSegments(std::move(segments)));
}

absl::Status MetricsSegments::Append(const std::string& lines) {
  return AsGone(segments_->Append(lines));
}
absl::Status MetricsSegments::Tick() { return AsGone(segments_->Tick()); }
absl::Status MetricsSegments::Keep() { return AsGone(segments_->Keep()); }

}  // namespace leeway
