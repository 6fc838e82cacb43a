// Writes the coordinator's record: at once if commands wait for it (an awaited record), otherwise
// when there is time. Retries a failed write for a limited time, and then gives the record up.
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
  // The writer retries the record of a failed job for this long at most. The limit is short,
  // because a full disk may both cause the failure and prevent the write, and waiting processes
  // must learn of the failure. Without that record a restarted coordinator goes on from the newest
  // checkpoint, as --resume does.
  static constexpr Duration kFailedPatience = std::chrono::seconds(5);

  // `sink` must outlive the writer. The writer retries an awaited record for `patience`.
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
  // more. An awaited record is then given up after one failed write.
  Attempt Write(const WriteRecord& record, bool hopeless, const std::function<Time()>& now);
  // Keeps a record that is not awaited. The caller writes it when there is time, unless it writes a
  // newer record first.
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
  // The next three fields are reset when a record is written. This one is the time at which the
  // write of the awaited record first failed.
  std::optional<Time> awaited_since_;
  // True if an awaited record was given up.
  bool given_up_ = false;
  // True if the failure was reported.
  bool complained_ = false;
};

}  // namespace leeway
