// Writes the coordinator's record: at once if commands depend on it, otherwise when there is time.
// A write that fails is retried until the record is given up.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "common/clock.h"
#include "server/coordinator/checkpoint_sink.h"
#include "server/coordinator/core/command.h"

namespace leeway {

// Not thread-safe: one thread uses it, and blocks while the disk works.
class RecordWriter {
 public:
  // The longest time for which the record of a failed job is retried. The cause of the failure may
  // be the same full disk, and waiting processes must learn of the failure. A coordinator restarted
  // without that record goes on from the newest checkpoint, as --resume does.
  static constexpr Duration kFailedPatience = std::chrono::seconds(5);

  // `sink` must outlive the writer. `patience` is how long the write of an awaited record is
  // retried.
  RecordWriter(CheckpointSink* sink, Duration patience) : sink_(sink), patience_(patience) {}

  struct Attempt {
    absl::Status status;
    // True if the record was written or given up, so that the core must be told. False if the write
    // must be tried again.
    bool settled = false;
    // True for the first failure since the last success, which the caller should report.
    bool news = false;
  };
  // Tries once to write the record. `hopeless` is true if the record's folder does not exist any
  // more; then an awaited record is given up if the write fails.
  Attempt Write(const WriteRecord& record, bool hopeless, const std::function<Time()>& now);
  // Keeps a record that nothing waits for. The caller writes it when there is time, unless a newer
  // record is written first.
  void Owe(WriteRecord record) { owed_ = std::move(record); }
  const std::optional<WriteRecord>& owed() const { return owed_; }
  // True if the latest record was given up, so that commands that depend on it must not be carried
  // out.
  bool given_up() const { return given_up_; }

 private:
  CheckpointSink* const sink_;
  const Duration patience_;
  // The kept record, if no newer record has been written.
  std::optional<WriteRecord> owed_;
  // The next three are reset when a record is written.
  // The time since which an awaited record could not be written.
  std::optional<Time> awaited_since_;
  // True if an awaited record was given up.
  bool given_up_ = false;
  // True if the failure was reported.
  bool complained_ = false;
};

}  // namespace leeway
