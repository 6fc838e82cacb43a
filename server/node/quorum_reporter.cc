#include "server/node/quorum_reporter.h"

#include <chrono>
#include <utility>

#include <spdlog/spdlog.h>

#include "common/clock.h"
#include "common/rpc/grpc_status.h"

namespace leeway {
namespace {

constexpr auto kSendAtMost = std::chrono::seconds(5);
// The time before a message that did not arrive is sent again.
constexpr Duration kPause = std::chrono::milliseconds(100);
// The time before a report is repeated if no set has been committed.
constexpr Duration kAgain = std::chrono::seconds(1);

}  // namespace

QuorumReporter::QuorumReporter(const Options& options, std::shared_ptr<grpc::Channel> coordinator)
    : options_(options),
      coordinator_(v1::Coordinator::NewStub(std::move(coordinator))),
      book_(options.rules),
      thread_([this] { Loop(); }) {}

QuorumReporter::~QuorumReporter() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
    if (context_) context_->TryCancel();
  }
  changed_.NotifyAll();
  thread_.join();
}

void QuorumReporter::OnLoaded(uint64_t version) {
  MutexLock lock(mutex_);
  book_.OnLoaded(version);
}

void QuorumReporter::OnAccepted(uint32_t rank, uint64_t clock) {
  {
    MutexLock lock(mutex_);
    if (!book_.OnAccepted(rank, clock, std::chrono::steady_clock::now())) return;
  }
  changed_.NotifyAll();
}

void QuorumReporter::OnRefused(uint32_t rank, uint64_t clock) {
  {
    MutexLock lock(mutex_);
    book_.OnRefused(rank, clock);
  }
  changed_.NotifyAll();
}

void QuorumReporter::OnLive(uint32_t rank, bool live) {
  {
    MutexLock lock(mutex_);
    book_.OnLive(rank, live);
  }
  changed_.NotifyAll();
}

void QuorumReporter::OnCommitted(uint64_t clock) {
  MutexLock lock(mutex_);
  book_.OnCommitted(clock);
}

void QuorumReporter::Loop() {
  while (const std::optional<HeldClock> held = Next()) {
    const absl::Status status = Send(*held);
    if (absl::IsFailedPrecondition(status)) {
      spdlog::info("the coordinator no longer asks which contributions are held: {}",
                   std::string(status.message()));
      return;
    }
    if (!status.ok()) Pause();
  }
}

std::optional<HeldClock> QuorumReporter::Next() {
  MutexLock lock(mutex_);
  while (!ending_) {
    if (std::optional<HeldClock> held = book_.Take(std::chrono::steady_clock::now())) {
      context_ = std::make_unique<grpc::ClientContext>();
      context_->set_deadline(std::chrono::system_clock::now() + kSendAtMost);
      return held;
    }
    // A report may come too early or too often without harm.
    if (!changed_.WaitUntil(mutex_, std::chrono::steady_clock::now() + kAgain)) book_.TellAgain();
  }
  return std::nullopt;
}

absl::Status QuorumReporter::Send(const HeldClock& held) {
  v1::ContributionsHeldRequest request;
  request.set_job(options_.job);
  request.set_generation(options_.generation);
  request.set_index(options_.shard);
  request.set_epoch(options_.epoch);
  request.set_clock(held.clock);
  request.mutable_ranks()->Add(held.ranks.begin(), held.ranks.end());
  request.set_again(held.again);
  request.mutable_refused()->Add(held.refused.begin(), held.refused.end());
  for (const Duration since : held.held) {
    request.add_held_us(std::chrono::duration_cast<std::chrono::microseconds>(since).count());
  }
  v1::ContributionsHeldReply reply;
  grpc::ClientContext* context;
  {
    MutexLock lock(mutex_);
    context = context_.get();
  }
  const grpc::Status status = coordinator_->ContributionsHeld(context, request, &reply);
  return ResultOf(status, *context);
}

void QuorumReporter::Pause() {
  MutexLock lock(mutex_);
  const Time again = std::chrono::steady_clock::now() + kPause;
  while (!ending_ && changed_.WaitUntil(mutex_, again)) {
  }
  book_.TellAgain();
}

}  // namespace leeway
