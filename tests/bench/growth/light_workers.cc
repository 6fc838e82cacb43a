#include "tests/bench/growth/light_workers.h"

#include <algorithm>
#include <thread>

#include "common/rpc/channel.h"
#include "common/status.h"
#include "tests/bench/growth/light_worker.h"

namespace leeway {
namespace {

// A worker's period (worker/trainer.cc): a lease lasts for several heartbeats.
constexpr Duration kBeatEvery = std::chrono::seconds(2);
constexpr size_t kSlices = 20;
// Even processes that one command starts do not all come at once.
constexpr Duration kComeApart = std::chrono::microseconds(200);
// All workers share a few connections to the coordinator for the control plane.
constexpr uint32_t kCoordinatorChannels = 8;

void Loop(grpc::CompletionQueue* queue) {
  void* tag = nullptr;
  bool ok = false;
  while (queue->Next(&tag, &ok)) QueueEvent::RunTag(tag, ok);
}

}  // namespace

LightWorkers::LightWorkers(const LightOptions& options)
    : options_(options), values_(options.floats, 1e-3f) {
  for (uint32_t i = 0; i < kCoordinatorChannels; ++i) {
    coordinators_.push_back(v1::Coordinator::NewStub(MakeChannel(options_.coordinator)));
  }
  for (uint32_t i = 0; i < options_.threads; ++i) {
    queues_.push_back(std::make_unique<grpc::CompletionQueue>());
  }
  for (uint32_t i = 0; i < options_.workers; ++i) {
    workers_.push_back(std::make_unique<LightWorker>(this, i, queues_[i % queues_.size()].get()));
  }
  for (const auto& queue : queues_) {
    std::thread(Loop, queue.get()).detach();
    BeatFrom(queue.get(), 0);
  }
}

void LightWorkers::BeatFrom(grpc::CompletionQueue* queue, size_t slice) {
  CallOn(queue, kBeatEvery / kSlices, [this, queue, slice] {
    for (size_t i = slice; i < workers_.size(); i += kSlices) {
      if (workers_[i]->queue() == queue) workers_[i]->Beat();
    }
    BeatFrom(queue, (slice + 1) % kSlices);
  });
}

void LightWorkers::Done(const absl::Status& status) {
  MutexLock lock(mutex_);
  if (status_.ok()) status_ = status;
  if (under_way_ > 0) --under_way_;
  changed_.NotifyAll();
}

absl::Status LightWorkers::ForEach(uint32_t count, void (LightWorker::*begin)(), Duration apart) {
  {
    MutexLock lock(mutex_);
    under_way_ = count;
  }
  for (uint32_t i = 0; i < count; ++i) {
    LightWorker* const worker = workers_[i].get();
    CallOn(worker->queue(), i * apart, [worker, begin] { (worker->*begin)(); });
  }
  MutexLock lock(mutex_);
  while (under_way_ > 0 && status_.ok()) changed_.Wait(mutex_);
  return status_;
}

absl::Status LightWorkers::Register() {
  return ForEach(options_.workers, &LightWorker::Register, kComeApart);
}

absl::Status LightWorkers::Connect() {
  RETURN_IF_ERROR(ForEach(options_.workers, &LightWorker::Connect));
  return ForEach(1, &LightWorker::Initialize);
}

absl::Status LightWorkers::Run(uint64_t clocks, LightRound* round) {
  for (const auto& worker : workers_) worker->SetClocks(clocks);
  const Time began = std::chrono::steady_clock::now();
  RETURN_IF_ERROR(ForEach(options_.workers, &LightWorker::Exchange));
  round->seconds = Seconds(std::chrono::steady_clock::now() - began);
  for (const auto& worker : workers_) {
    round->requests += worker->blocks() * clocks;
    round->repeated += worker->repeated();
  }
  for (uint64_t clock = 0; clock < clocks; ++clock) {
    Time last = began;
    for (const auto& worker : workers_) last = std::max(last, worker->sent()[clock]);
    for (const auto& worker : workers_) {
      round->release_seconds.push_back(Seconds(worker->received()[clock] - last));
      round->answer_seconds.push_back(Seconds(worker->received()[clock] - worker->sent()[clock]));
    }
  }
  return absl::OkStatus();
}

absl::Status LightWorkers::Leave() {
  return ForEach(options_.workers, &LightWorker::Leave, kComeApart);
}

}  // namespace leeway
