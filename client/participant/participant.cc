#include "client/participant/participant.h"

#include <algorithm>
#include <utility>

#include <spdlog/spdlog.h>

#include "client/calls/client_options.h"
#include "common/clock.h"
#include "common/status.h"
#include "common/update/averaging.h"

namespace leeway {
namespace {

// Four heartbeats fit into a lease, so that three of them may be lost. Half a second is the
// maximum, so that the live view gets a few heartbeats a second.
Duration HeartbeatEvery(const v1::TrainingJob& job) {
  return FromSeconds(std::min(job.limits().lease_seconds() / 4, 0.5));
}

}  // namespace

Participant::Participant(const v1::RegisterWorkerReply& registration, CoordinatorSession& session,
                         ContributionMemory* contributions, TransportFactory transport)
    : registration_(registration),
      session_(session),
      contributions_(contributions),
      transport_(std::move(transport)),
      gate_([this] { BreakOff(); }) {}

// The heartbeats end first, because they use the gate and the client.
Participant::~Participant() { session_.EndHeartbeats(); }

absl::Status Participant::Open() {
  const v1::TrainingJob& job = registration_.job();
  ASSIGN_OR_RETURN(ParameterClientOptions options, ClientOptionsOf(registration_));
  options.on_unreached = [this] { session_.BeatSoon(); };
  options.goes_on = [this] { return session_.others_are_heard(); };
  // Elastic answers are older than the version that they name, and a spread worker loads its saved
  // state into the vector. So in both exchanges the vector may not hold the version that was
  // received last.
  // Other workers' answers are written to it, too, if there are peers.
  options.weights_stay = !job.exchange().has_elastic() && !job.exchange().delta().spread() &&
                         !registration_.has_peers();
  ASSIGN_OR_RETURN(client_, ParameterClient::Open(options, transport_));
  if (job.data().assignment() == v1::ASSIGNMENT_LEASED) {
    const v1::JobLength& length = registration_.length();
    LeasedBatches::Steps steps{.of_clock = length.steps_per_clock()};
    // LeasedBatches counts steps as if all earlier clocks had had this number of steps.
    const uint64_t before = length.first_clock() * length.steps_per_clock();
    if (length.total_clocks() == 0) steps.all = length.steps() - length.first_step() + before;
    leases_ = std::make_unique<LeasedBatches>(LeasedBatches::Of(session_), steps);
  }
  if (registration_.has_peers()) OpenPeers();
  return OpenGroup();
}

void Participant::OpenPeers() {
  const v1::TrainingJob& job = registration_.job();
  peers_ = std::make_unique<PeerCalls>(
      PeerCalls::Options{.peers = registration_.peers(),
                         .identity = {registration_.job_id(), registration_.generation(),
                                      registration_.rank(), registration_.incarnation()},
                         .transport = job.transport().type(),
                         .total = registration_.schema().total(),
                         .exchange_seconds = job.limits().exchange_seconds(),
                         .on_unreached = [this] { session_.BeatSoon(); },
                         .goes_on = [this] { return session_.others_are_heard(); }});
}

absl::Status Participant::OpenGroup() {
  if (contributions_ == nullptr || !registration_.has_group()) return absl::OkStatus();
  const v1::TrainingJob& job = registration_.job();
  ASSIGN_OR_RETURN(group_,
                   HostGroup::Open({.rank = registration_.rank(),
                                    .generation = registration_.generation(),
                                    .members = registration_.group(),
                                    .averaged = AveragedElementsOf(registration_.schema()),
                                    .batches = {static_cast<double>(job.data().batch_size()),
                                                registration_.length()},
                                    .exchange_seconds = job.limits().exchange_seconds(),
                                    .goes_on = [this] { return session_.others_are_heard(); }},
                                   client_->layout(), *contributions_));
  if (group_ == nullptr) {
    spdlog::info("no other worker can read this worker's memory, so it sends its own contribution");
    return absl::OkStatus();
  }
  spdlog::info("{} workers of this host combine their contributions; worker {} sends for all",
               registration_.group().members_size(), registration_.group().members(0).rank());
  return absl::OkStatus();
}

void Participant::StartHeartbeats() {
  session_.StartHeartbeats(
      HeartbeatEvery(registration_.job()),
      {.waiting = [this] { return Waiting(); },
       .on_stop_at = [this](uint64_t clock) { gate_.StopAt(clock); },
       .on_servers = [this](const auto& servers) { client_->MoveServers(servers); },
       .on_peers =
           [this](const v1::Peers& peers) {
             if (peers_ != nullptr) peers_->Move(peers);
           },
       .on_group =
           [this](const v1::HostGroup& group) {
             if (group_ != nullptr) group_->TakeOffers(group);
           },
       .on_refused = [this](const absl::Status& why) { gate_.Refuse(why); }});
  // The job may already be stopping when this life begins.
  if (registration_.has_stop_at()) gate_.StopAt(registration_.stop_at());
}

std::string Participant::Waiting() const {
  std::string waiting = group_ != nullptr ? group_->Waiting() : "";
  if (waiting.empty() && peers_ != nullptr) waiting = peers_->Waiting();
  if (waiting.empty()) waiting = client_->Waiting();
  return waiting.empty() && leases_ != nullptr ? leases_->Waiting() : waiting;
}

void Participant::BreakOff() {
  client_->Cancel();
  if (peers_ != nullptr) peers_->Cancel();
  if (group_ != nullptr) group_->Cancel();
}

bool Participant::IsToAskWhereToStop() const {
  return !asked_where_to_stop_ && session_.stop_requested();
}

absl::Status Participant::AskWhereToStop(uint64_t clock) {
  ASSIGN_OR_RETURN(const uint64_t stop_at, session_.StopAt(clock));
  asked_where_to_stop_ = true;
  spdlog::info("stopping at clock {}", stop_at);
  gate_.StopAt(stop_at);
  return absl::OkStatus();
}

void Participant::ReportDone() {
  if (leases_ != nullptr) leases_->Flush();
}

}  // namespace leeway
