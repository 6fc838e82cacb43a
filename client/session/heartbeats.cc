#include "client/session/heartbeats.h"

#include <algorithm>
#include <utility>

#include "client/calls/client_options.h"
#include "common/rpc/grpc_status.h"
#include "common/status.h"

namespace leeway {
namespace {

// The time limit of one heartbeat. A heartbeat that takes longer is given up, because the next one
// has the same content.
constexpr Duration kHeartbeatAttempt = std::chrono::seconds(5);

}  // namespace

Heartbeats::Heartbeats(CoordinatorCalls& calls, const SessionLife& life)
    : calls_(calls), life_(life), others_heard_(calls, life) {}

Heartbeats::~Heartbeats() { End(); }

void Heartbeats::Begin(const v1::RegisterWorkerReply& reply) {
  MutexLock lock(mutex_);
  heard_.epoch = reply.epoch();
  heard_.peers_epoch = reply.peers().epoch();
}

void Heartbeats::Start(Duration every, Listener listener) {
  every_ = every;
  listener_ = std::move(listener);
  thread_ = std::thread([this] { Loop(); });
}

void Heartbeats::End() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void Heartbeats::Loop() {
  Duration soon = kBeatsApart;
  std::pair<uint64_t, uint64_t> known;
  while (true) {
    const absl::Status status = Beat();
    if (!status.ok() && !IsRetryable(status.code())) {
      if (listener_.on_refused) listener_.on_refused(Annotate(status, "heartbeat"));
      return;
    }
    const Time beat = std::chrono::steady_clock::now();
    MutexLock lock(mutex_);
    // If a process is gone for long, thousands of workers may ask for its new address. So each of
    // them asks less and less often.
    const std::pair newest(heard_.epoch, heard_.peers_epoch);
    if (std::exchange(known, newest) != newest) soon = kBeatsApart;
    while (!ending_ && changed_.WaitUntil(mutex_, beat + (beat_soon_ ? soon : every_))) {
    }
    if (ending_) return;
    soon = std::exchange(beat_soon_, false) ? std::min(2 * soon, every_) : kBeatsApart;
  }
}

void Heartbeats::BeatSoon() {
  MutexLock lock(mutex_);
  if (std::exchange(beat_soon_, true)) return;
  changed_.NotifyAll();
}

v1::HeartbeatRequest Heartbeats::GreetingNow() const {
  v1::HeartbeatRequest request;
  life_.Sign(request);
  request.set_clock(clock_);
  request.set_epoch(heard_.epoch);
  request.set_peers_epoch(heard_.peers_epoch);
  return request;
}

v1::HeartbeatRequest Heartbeats::Greeting() const {
  MutexLock lock(mutex_);
  return GreetingNow();
}

v1::HeartbeatRequest Heartbeats::MakeHeartbeat(std::vector<v1::EvaluationMetrics>& evaluations) {
  MutexLock lock(mutex_);
  v1::HeartbeatRequest request = GreetingNow();
  for (v1::StepMetrics& record : steps_.Take()) *request.add_steps() = std::move(record);
  evaluations.swap(evaluations_);
  for (const v1::EvaluationMetrics& record : evaluations) *request.add_evaluations() = record;
  return request;
}

absl::Status Heartbeats::Beat() {
  std::vector<v1::EvaluationMetrics> evaluations;
  v1::HeartbeatRequest request = MakeHeartbeat(evaluations);
  if (listener_.waiting) request.set_waiting(listener_.waiting());
  others_heard_.Look(request.waiting());
  grpc::ClientContext context;
  context.set_deadline(After(kHeartbeatAttempt));
  v1::HeartbeatReply reply;
  const grpc::Status answer = calls_.stub().Heartbeat(&context, request, &reply);
  const absl::Status status = ResultOf(answer, context);
  if (status.ok()) {
    TakeReply(reply);
    return status;
  }
  // Without an answer the records may not have arrived, so they are sent again.
  MutexLock lock(mutex_);
  steps_.PutBack({request.steps().begin(), request.steps().end()});
  evaluations_.insert(evaluations_.begin(), evaluations.begin(), evaluations.end());
  return status;
}

void Heartbeats::TakeReply(const v1::HeartbeatReply& reply) {
  bool changed = false;
  bool moved = false;
  {
    MutexLock lock(mutex_);
    moved = reply.epoch() > heard_.epoch && reply.servers_size() > 0;
    if (moved) heard_.epoch = reply.epoch();
    if (reply.has_peers()) heard_.peers_epoch = reply.peers().epoch();
    heard_.stop_requested |= reply.stop_requested();
    changed = reply.has_stop_at() && heard_.stop_at != reply.stop_at();
    if (changed) heard_.stop_at = reply.stop_at();
  }
  if (moved && listener_.on_servers) {
    listener_.on_servers(EndpointsOf(reply.servers(), reply.local_servers()));
  }
  if (reply.has_peers() && listener_.on_peers) listener_.on_peers(reply.peers());
  if (reply.has_group() && listener_.on_group) listener_.on_group(reply.group());
  if (changed && listener_.on_stop_at) listener_.on_stop_at(reply.stop_at());
}

absl::Status Heartbeats::Tell(const std::string& what, const v1::HeartbeatRequest& request) {
  v1::HeartbeatReply reply;
  RETURN_IF_ERROR(calls_.Call(what, life_.Patience(), [&](grpc::ClientContext& context) {
    return calls_.stub().Heartbeat(&context, request, &reply);
  }));
  MutexLock lock(mutex_);
  heard_.stop_requested |= reply.stop_requested();
  return absl::OkStatus();
}

void Heartbeats::SetClock(uint64_t clock) {
  MutexLock lock(mutex_);
  clock_ = clock;
}

void Heartbeats::Report(const v1::StepMetrics& metrics) {
  const Time now = std::chrono::steady_clock::now();
  MutexLock lock(mutex_);
  steps_.Add(metrics, now);
}

void Heartbeats::Report(const v1::EvaluationMetrics& metrics) {
  MutexLock lock(mutex_);
  evaluations_.push_back(metrics);
}

bool Heartbeats::stop_requested() const {
  MutexLock lock(mutex_);
  return heard_.stop_requested;
}

}  // namespace leeway
