#include "server/coordinator/record_writer.h"

#include <algorithm>

namespace leeway {

RecordWriter::Attempt RecordWriter::Write(const WriteRecord& record, bool hopeless,
                                          const std::function<Time()>& now) {
  Attempt attempt{.status = sink_->WriteRecord(record.record)};
  if (attempt.status.ok()) {
    owed_.reset();
    awaited_since_.reset();
    given_up_ = complained_ = false;
    attempt.settled = true;
    return attempt;
  }
  attempt.news = !std::exchange(complained_, true);
  if (!record.awaited) return attempt;
  const Time at = now();
  if (!awaited_since_) awaited_since_ = at;
  const bool failed = record.record.outcome() == v1::JOB_FAILED;
  const Duration patience = failed ? std::min(patience_, kFailedPatience) : patience_;
  given_up_ |= at - *awaited_since_ >= patience || hopeless;
  attempt.settled = given_up_;
  return attempt;
}

}  // namespace leeway
