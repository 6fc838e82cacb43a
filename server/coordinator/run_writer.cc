#include "server/coordinator/run_writer.h"

#include <cstddef>
#include <utility>

#include <spdlog/spdlog.h>

namespace leeway {
namespace {

// The most writes that may wait for the disk. If more wait, metrics are dropped, so that memory
// stays bounded.
constexpr size_t kWritesBehindMax = 10'000;
constexpr std::chrono::seconds kTickEvery(1);

}  // namespace

RunWriter::RunWriter(CheckpointSink* sink, std::unique_ptr<MetricsLog> metrics, Core core)
    : sink_(sink), metrics_(std::move(metrics)), core_(std::move(core)) {}

void RunWriter::Append(std::string lines) {
  if (thread_.waiting() > kWritesBehindMax) {
    spdlog::warn("metrics.jsonl: the disk is too slow, so {} bytes of metrics were dropped",
                 lines.size());
    return;
  }
  Post([this, lines = std::move(lines)] { Told(metrics_->Append(lines)); });
}

void RunWriter::Told(const absl::Status& status) {
  if (status.ok()) return;
  spdlog::warn("{}", status.ToString());
  if (!absl::IsNotFound(status) || folder_gone_.exchange(true)) return;
  core_.answer(RunFolderGone{std::string(status.message())});
}

void RunWriter::Tick(Time now) {
  if (now < next_tick_) return;
  next_tick_ = now + kTickEvery;
  Post([this] { Told(metrics_->Tick()); });
}

void RunWriter::Keep() {
  Post([this] { Told(metrics_->Keep()); });
}

void RunWriter::Write(WriteManifest command) {
  Post([this, command = std::move(command)] { WriteCheckpoint(command); });
}

void RunWriter::WriteCheckpoint(const WriteManifest& command) {
  const uint64_t clock = command.manifest.clock();
  absl::Status status;
  for (const AdoptState& state : command.adopt) {
    if (status.ok()) status = sink_->AdoptWorkerState(state.from_clock, state.file, clock);
  }
  // First makes the metrics durable, so that a run that continues from the checkpoint finds the
  // metrics up to the checkpoint's clock.
  Told(metrics_->Keep());
  if (status.ok()) status = sink_->WriteManifest(command.manifest);
  core_.answer(ManifestWritten{clock, status});
  if (!status.ok()) return;
  // The new checkpoint exists even if old checkpoints cannot be removed, so a failure to remove
  // them is only logged.
  const absl::Status removed = sink_->RemoveOld(core_.state_folders);
  if (!removed.ok()) spdlog::warn("cannot remove old checkpoints: {}", removed.ToString());
}

}  // namespace leeway
