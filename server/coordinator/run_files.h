// What the coordinator writes beside its decisions, on a thread that may wait for the disk:
// metrics.jsonl and the manifests of checkpoints.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "common/clock.h"
#include "server/coordinator/checkpoint_sink.h"
#include "server/coordinator/core/command.h"
#include "server/coordinator/core/command_answer.h"
#include "server/coordinator/metrics_log.h"
#include "server/coordinator/serial_thread.h"

namespace leeway {

// Thread-safe. The destructor does what was asked for before it.
class RunFiles {
 public:
  struct Core {
    // How it went.
    std::function<void(const CommandAnswer&)> answer;
    // CoordinatorCore::StateFolders.
    std::function<std::set<uint64_t>()> state_folders;
  };
  // `sink` outlives it. The functions of `core` are called on its thread.
  RunFiles(CheckpointSink* sink, std::unique_ptr<MetricsLog> metrics, Core core);

  CheckpointSink* sink() const { return sink_; }
  // Whole lines for metrics.jsonl. Dropped, rather than kept without bound, where the disk is far
  // behind.
  void Append(std::string lines);
  // At any time; about once a second it has an effect.
  void Tick(Time now);
  // The lines so far are where others read them when it has had its turn.
  void Keep();
  void Write(WriteManifest command);
  // Called when all before it is done.
  void Post(std::function<void()> job) { thread_.Post(std::move(job)); }
  // The run folder was removed or moved; the core knows.
  bool folder_gone() const { return folder_gone_; }

 private:
  void WriteCheckpoint(const WriteManifest& command);
  // How writing lines went.
  void Told(const absl::Status& status);

  CheckpointSink* const sink_;
  // Used on its thread alone.
  const std::unique_ptr<MetricsLog> metrics_;
  const Core core_;
  std::atomic<bool> folder_gone_{false};
  // Of the caller's thread.
  Time next_tick_{};
  // First to go: it uses the others.
  SerialThread thread_;
};

}  // namespace leeway
