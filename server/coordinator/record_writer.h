// Writes the coordinator's record: at once where something is to follow from it, else when there is
// time. One that cannot be written is tried again until there is no hope.
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

// Not thread-safe: of one thread, which blocks while the disk works.
class RecordWriter {
 public:
  // At most, of the record of a job that has failed: what it failed of may be the same full disk,
  // and whoever waits is to hear of it. A coordinator started again without that record goes on
  // from the newest checkpoint, as --resume does.
  static constexpr Duration kFailedPatience = std::chrono::seconds(5);

  // `sink` outlives it. `patience`: how long a record that is awaited is tried.
  RecordWriter(CheckpointSink* sink, Duration patience) : sink_(sink), patience_(patience) {}

  struct Attempt {
    absl::Status status;
    // Written, or given up: the core is to be told. Else it is to be tried again.
    bool settled = false;
    // The first failure since one was written: somebody should know.
    bool news = false;
  };
  // `hopeless`: where it goes is no more.
  Attempt Write(const WriteRecord& record, bool hopeless, const std::function<Time()>& now);
  // Nothing waits for it: it is written when there is time, unless a newer one is.
  void Owe(WriteRecord record) { owed_ = std::move(record); }
  const std::optional<WriteRecord>& owed() const { return owed_; }
  // What follows from the latest record is not to be done: it was given up.
  bool given_up() const { return given_up_; }

 private:
  CheckpointSink* const sink_;
  const Duration patience_;
  // No newer one has been written.
  std::optional<WriteRecord> owed_;
  // Since when a record that is awaited could not be written; that it was given up; that it was
  // said. Until one is written.
  std::optional<Time> awaited_since_;
  bool given_up_ = false;
  bool complained_ = false;
};

}  // namespace leeway
