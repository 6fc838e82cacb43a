#include "server/node/server_membership.h"

#include <algorithm>
#include <chrono>
#include <future>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "common/object_store/address.h"
#include "common/retry_hint.h"
#include "common/rpc/channel.h"
#include "common/status.h"
#include "common/storage/storage.h"

namespace leeway {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(250);
// The time between heartbeats while another process waits for a message from this server. It is
// short, because until the coordinator knows that a replica is complete, the death of a server
// sends the job back to a checkpoint.
constexpr Duration kSoon = std::chrono::milliseconds(25);
// The maximum time between heartbeats. A restarted coordinator hears from its servers within this
// time.
constexpr Duration kHeartbeatAtMost = std::chrono::milliseconds(500);
constexpr Duration kCallAtMost = std::chrono::seconds(5);
// The time between questions about unknown incarnations.
constexpr Duration kQuestionsApart = std::chrono::milliseconds(10);
// The time limit of calls from the thread that also refuses requests which have waited for too
// long.
constexpr Duration kShortCallAtMost = std::chrono::seconds(1);
// The time limit for asking whether other servers hold this server's shards, and the pause before
// asking again.
constexpr Duration kDrainAttempt = std::chrono::seconds(2);
constexpr Duration kDrainPause = std::chrono::milliseconds(20);
// The server uses only this share of a lease, because its clock may be slower than the
// coordinator's.
constexpr double kLeaseShare = 0.9;

absl::Status PrepareStore(const std::string& run_dir) {
  ASSIGN_OR_RETURN(Storage* const storage, StorageOf(run_dir));
  return storage->Prepare(run_dir);
}

}  // namespace

absl::Status ServerMembership::Join(const CoordinatorClient::Identity& self,
                                    const TransportSecurity& security, Time deadline,
                                    const std::function<void(const v1::TrainingJob&)>& on_job) {
  client_ = std::make_unique<CoordinatorClient>(self, MakeChannel(self.coordinator, security));
  absl::StatusOr<v1::RegisterServerReply> reply;
  BootTime sent;
  do {
    sent = boot_now_();
    reply = client_->Register(std::nullopt, kCallAtMost);
    // The next call does not wait, so it gets the coordinator's present answer.
    if (absl::IsDeadlineExceeded(reply.status())) {
      reply = client_->Register(std::nullopt, kShortCallAtMost, /*wait=*/false);
    }
  } while (IsRetryable(reply.status().code()) && std::chrono::steady_clock::now() < deadline &&
           !IsOverAfter(kSoon));
  if (absl::IsAlreadyExists(reply.status())) HearsOutcome();
  RETURN_IF_ERROR(Annotate(reply.status(),
                           absl::StrCat("registering server ", self.index, " (", self.advertised,
                                        ") with the coordinator at ", self.coordinator)));
  client_->Serve(*reply);
  const v1::TrainingJob& job = reply->job();
  if (on_job) on_job(job);
  service_.SetLimits(job);
  service_.table().lives().Expect(job.workers().count(), [this] { AskForIncarnations(); });
  // If the coordinator gets no further message, it counts the lease from this moment.
  ExtendLease(sent);
  RETURN_IF_ERROR(TryRunDir());
  MutexLock lock(mutex_);
  joined_ = true;
  return absl::OkStatus();
}

absl::Status ServerMembership::TryRunDir() {
  const std::string& run_dir = client_->served().run_dir;
  // A folder needs no trial, because it is made when the first file is written there. For an object
  // store, this server's own settings may be wrong, so the server tries them. Server 0 did so
  // before it made the job.
  if (client_->self().index == 0 || !IsObjectLocation(run_dir)) return absl::OkStatus();
  std::future<absl::Status> trial = std::async(std::launch::async, PrepareStore, run_dir);
  do {
    // A coordinator that was killed and restarted knows no servers.
    if (absl::IsFailedPrecondition(Heartbeat({}))) RegisterAgain().IgnoreError();
  } while (trial.wait_for(HeartbeatsApart()) != std::future_status::ready);
  return trial.get();
}

void ServerMembership::ExtendLease(BootTime sent) {
  const double seconds = client_->served().job.limits().lease_seconds();
  service_.table().SetLease(sent + FromSeconds(kLeaseShare * seconds));
}

absl::Status ServerMembership::RegisterAgain() {
  std::optional<uint64_t> held;
  {
    MutexLock lock(mutex_);
    held = held_.generation;
  }
  ASSIGN_OR_RETURN(const v1::RegisterServerReply reply, client_->Register(held, kShortCallAtMost));
  if (reply.job_id() == client_->served().id) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat("another job, ", absl::Hex(reply.job_id()),
                                               ", has its coordinator at ",
                                               client_->self().coordinator));
}

bool ServerMembership::IsOverAfter(Duration pause) {
  MutexLock lock(mutex_);
  const Time until = std::chrono::steady_clock::now() + pause;
  if (!over_ && !asks_incarnations_) changed_.WaitUntil(mutex_, until);
  return over_;
}

absl::Status ServerMembership::CheckJoined(uint64_t job) {
  MutexLock lock(mutex_);
  if (!joined_) {
    return absl::UnavailableError(
        "the server is not ready yet: it is registering or trying out the object store");
  }
  return client_->CheckJob(job);
}

void ServerMembership::Hold(Held held) {
  MutexLock lock(mutex_);
  held_ = std::move(held);
  if (!held_.generation) return;
  asks_incarnations_ = true;
  changed_.NotifyAll();
}

void ServerMembership::AskForIncarnations() {
  MutexLock lock(mutex_);
  // Limit the questions, because a sender may invent incarnations.
  if (std::chrono::steady_clock::now() - asked_incarnations_ < kQuestionsApart) return;
  asks_incarnations_ = true;
  changed_.NotifyAll();
}

bool ServerMembership::AsksForIncarnations() {
  MutexLock lock(mutex_);
  return asks_incarnations_;
}

Duration ServerMembership::HeartbeatsApart() const {
  const double lease = client_->served().job.limits().lease_seconds();
  return std::min<Duration>(FromSeconds(lease) / 4, kHeartbeatAtMost);
}

ServerMembership::Outcome ServerMembership::WaitUntilOver() {
  const Duration every = HeartbeatsApart();
  Time heard = std::chrono::steady_clock::now();
  Time next_heartbeat = heard;
  Time next_tick = heard;
  std::vector<Replica> told;
  // True if another process waits to learn that a newly registered server is alive, or that a
  // replica is complete.
  bool awaited = true;
  while (!IsOverAfter(awaited ? kSoon : kTick)) {
    const Time now = std::chrono::steady_clock::now();
    if (now >= next_tick) {
      service_.Tick();
      TellReadiness();
      next_tick = now + kTick;
    }
    std::vector<Replica> replicas = FindReplicas();
    if (now < next_heartbeat && replicas == told && !AsksForIncarnations()) continue;
    next_heartbeat = now + every;
    absl::Status status = Heartbeat(replicas);
    told = std::move(replicas);
    awaited =
        std::any_of(told.begin(), told.end(), [](const Replica& each) { return !each.synced; });
    // A coordinator that was killed and restarted knows no servers.
    if (absl::IsFailedPrecondition(status)) {
      status = RegisterAgain();
      awaited |= status.ok();
      if (status.ok()) next_heartbeat = now;
    }
    if (status.ok()) heard = std::chrono::steady_clock::now();
    if (const auto outcome = OutcomeOf(status, heard)) return *outcome;
  }
  return OutcomeOfEnd();
}

bool ServerMembership::Drain(Duration within, const std::function<bool(Duration)>& pause) {
  {
    MutexLock lock(mutex_);
    if (!joined_) return false;
    leaves_ = true;
  }
  const Time until = std::chrono::steady_clock::now() + within;
  std::string waits_for;
  do {
    const auto reply = client_->Drain(kDrainAttempt);
    waits_for = reply.ok() ? reply->message() : std::string(reply.status().message());
    if (reply.ok() && reply->released()) break;
    if (absl::IsFailedPrecondition(reply.status()) || !pause(kDrainPause)) return false;
  } while (std::chrono::steady_clock::now() < until);
  if (waits_for.empty()) {
    spdlog::info("other servers have taken over the shards of this one");
  } else {
    spdlog::warn("this server leaves before others have taken over its shards: {}", waits_for);
  }
  Leave();
  return true;
}

void ServerMembership::Leave() {
  {
    MutexLock lock(mutex_);
    leaves_ = over_ = true;
  }
  changed_.NotifyAll();
}

void ServerMembership::End(v1::JobState outcome) {
  {
    MutexLock lock(mutex_);
    over_ = true;
    job_outcome_ = outcome;
  }
  changed_.NotifyAll();
}

v1::JobState ServerMembership::job_outcome() {
  MutexLock lock(mutex_);
  return job_outcome_;
}

void ServerMembership::TellReadiness() {
  if (!tell_readiness_) return;
  bool ready = false;
  {
    MutexLock lock(mutex_);
    ready = held_.generation.has_value() && !leaves_;
  }
  if (std::exchange(told_ready_, ready) != ready) tell_readiness_(ready);
}

ServerMembership::Outcome ServerMembership::OutcomeOfEnd() {
  MutexLock lock(mutex_);
  const bool goes_on = job_outcome_ < v1::JOB_FINISHED;
  return leaves_ && goes_on ? Outcome::kDrained : Outcome::kShutDown;
}

bool ServerMembership::HearsOutcome() {
  const auto status = client_->Status(kShortCallAtMost);
  // Before this server has joined, it accepts the answer of any job.
  const uint64_t job = client_->served().id;
  if (!status.ok() || (job != 0 && status->job_id() != job)) return false;
  MutexLock lock(mutex_);
  job_outcome_ = status->state();
  return true;
}

std::optional<ServerMembership::Outcome> ServerMembership::OutcomeOf(const absl::Status& status,
                                                                     Time heard) {
  if (absl::IsAlreadyExists(status)) {
    // If another job has this coordinator's address now, the server's next life may belong to that
    // job.
    return HearsOutcome() ? OutcomeOfEnd() : Outcome::kCoordinatorLost;
  }
  if (absl::IsAborted(status)) {
    spdlog::error("{}", std::string(status.message()));
    return Outcome::kReplaced;
  }
  const Duration patience = FromSeconds(client_->served().job.limits().start_seconds());
  if (std::chrono::steady_clock::now() - heard <= patience) return std::nullopt;
  spdlog::error("the coordinator at {} has not answered for {:.0f} s: {}",
                client_->self().coordinator, Seconds(patience), std::string(status.message()));
  return Outcome::kCoordinatorLost;
}

std::vector<ServerMembership::Replica> ServerMembership::FindReplicas() {
  std::vector<HeldModel::Replicated> replicated;
  {
    MutexLock lock(mutex_);
    replicated = held_.replicated;
  }
  std::vector<Replica> found;
  for (const HeldModel::Replicated& each : replicated) {
    found.push_back({each.number, each.since_epoch, each.shard->replica_synced()});
  }
  return found;
}

absl::Status ServerMembership::Heartbeat(const std::vector<Replica>& replicas) {
  v1::ServerHeartbeatRequest request;
  std::optional<uint64_t> epoch;
  {
    MutexLock lock(mutex_);
    request.set_generation(held_.generation.value_or(0));
    epoch = held_.epoch;
    request.set_wants_incarnations(std::exchange(asks_incarnations_, false));
    if (request.wants_incarnations()) asked_incarnations_ = std::chrono::steady_clock::now();
  }
  for (const Replica& replica : replicas) {
    if (!replica.synced) continue;
    v1::SyncedShard& synced = *request.add_synced();
    synced.set_shard(replica.shard);
    synced.set_since_epoch(replica.since_epoch);
  }
  const ByteBudget::Load load = service_.table().budget().load();
  request.mutable_load()->set_held_bytes(load.held_bytes);
  request.mutable_load()->set_held_bytes_max(load.held_bytes_max);
  request.mutable_load()->set_refused_contributions(load.refused_contributions);
  request.mutable_load()->set_refused_unread(load.refused_unread);
  const BootTime sent = boot_now_();
  ASSIGN_OR_RETURN(const v1::ServerHeartbeatReply reply,
                   client_->Heartbeat(request, kShortCallAtMost));
  if (request.wants_incarnations()) {
    service_.table().lives().Learn({reply.incarnations().begin(), reply.incarnations().end()});
  }
  // This server counts the lease from the moment at which it sent the heartbeat. The coordinator
  // counts from the later moment at which it received the heartbeat. A server that does not know
  // the newest placement gets no lease, because other servers may own its blocks by now.
  if (!epoch.has_value() || *epoch == reply.epoch()) ExtendLease(sent);
  return absl::OkStatus();
}

}  // namespace leeway
