// Writes metrics.jsonl and the manifests of checkpoints, on a thread that may wait for the disk.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "common/clock.h"
#include "run/metrics_log.h"
#include "server/coordinator/checkpoint_sink.h"
#include "server/coordinator/core/command.h"
#include "server/coordinator/core/command_answer.h"
#include "server/coordinator/serial_thread.h"

namespace leeway {

// Thread-safe. The destructor first finishes everything that was asked for.
class RunWriter {
 public:
  struct Core {
    // Receives the result of a command.
    std::function<void(const CommandAnswer&)> answer;
    // Calls CoordinatorCore::StateFolders.
    std::function<std::set<uint64_t>()> state_folders;
  };
  // `sink` must outlive the RunWriter. The functions of `core` are called on the thread of the
  // RunWriter.
  RunWriter(CheckpointSink* sink, std::unique_ptr<MetricsLog> metrics, Core core);

  CheckpointSink* sink() const { return sink_; }
  // Appends whole lines to metrics.jsonl. If the disk is far behind, drops the lines, so that
  // memory stays bounded.
  void Append(std::string lines);
  // May be called at any time, but has an effect only about once a second.
  void Tick(Time now);
  // Asks the thread to make all lines appended so far visible to readers.
  void Keep();
  void Write(WriteManifest command);
  // Calls `job` when everything posted before it is done.
  void Post(std::function<void()> job) { thread_.Post(std::move(job)); }
  // True if the run folder was removed or moved. In that case the core has been told.
  bool folder_gone() const { return folder_gone_; }

 private:
  void WriteCheckpoint(const WriteManifest& command);
  // Handles the result of writing lines.
  void Told(const absl::Status& status);

  CheckpointSink* const sink_;
  // Only thread_ uses these fields.
  const std::unique_ptr<MetricsLog> metrics_;
  const Core core_;
  std::atomic<bool> folder_gone_{false};
  // Only the caller's thread uses this field.
  Time next_tick_{};
  // Declared last, so that it is destroyed first: its jobs use the other members.
  SerialThread thread_;
};

}  // namespace leeway
