// A server's place in its job. It registers with the coordinator, keeps its lease by heartbeats,
// registers again with a restarted coordinator, leaves in order, and learns how the job ended.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/rpc/transport_security.h"
#include "leeway/v1/coordinator.pb.h"
#include "server/node/coordinator_client.h"
#include "server/node/held_model.h"
#include "server/service/parameter_service.h"

namespace leeway {

// Thread-safe.
class ServerMembership {
 public:
  // How WaitUntilOver ended. kDrained means that Leave() was called.
  enum class Outcome { kShutDown, kCoordinatorLost, kReplaced, kDrained };
  // What the heartbeats report about this server's part of the model: its generation, its epoch and
  // its replicated shards.
  struct Held {
    std::optional<uint64_t> generation;
    std::optional<uint64_t> epoch;
    std::vector<HeldModel::Replicated> replicated;
  };

  // `boot_now` is the clock by which the server measures its lease.
  ServerMembership(std::function<BootTime()> boot_now, ParameterService& service)
      : boot_now_(std::move(boot_now)), service_(service) {}

  // Registers with the coordinator. Tries until `deadline`. Call this once the services accept
  // calls. `on_job` is called with the job before anything is written.
  absl::Status Join(const CoordinatorClient::Identity& self, const TransportSecurity& security,
                    Time deadline, const std::function<void(const v1::TrainingJob&)>& on_job = {});
  // Keeps the lease until the coordinator reports that the job is over, or until the coordinator
  // has not answered for limits.start_seconds. Registers again with a restarted coordinator.
  Outcome WaitUntilOver();
  // Moves this server's shards to other servers, in at most `within`, and then leaves. Call this
  // while WaitUntilOver runs on another thread. `pause` waits between attempts. If `pause` returns
  // false, if the server has not joined the job yet, or if the coordinator has another job, Drain
  // returns false and the server does not leave. The server counts as leaving from the first
  // attempt on.
  bool Drain(Duration within, const std::function<bool(Duration)>& pause);
  // Ends the running call of WaitUntilOver. Without a running call, ends the next call.
  void Leave();
  // Ends WaitUntilOver, because the coordinator has reported how the job ended.
  void End(v1::JobState outcome);
  // `tell` is called in WaitUntilOver's thread whenever the readiness changes. A server is ready if
  // it holds its part of the model and is not leaving. Call this before WaitUntilOver.
  void OnReadiness(std::function<void(bool)> tell) { tell_readiness_ = std::move(tell); }
  // Returns how the job ended. The coordinator has reported this through End(), or when it refused
  // this server. If the coordinator has reported no end, or if the job continues without this
  // server, the result is a state of a job that has not ended.
  v1::JobState job_outcome();

  // Returns UNAVAILABLE before the server has joined, and FAILED_PRECONDITION for another job.
  absl::Status CheckJoined(uint64_t job);
  // The calls to the coordinator. To be used once CheckJoined has succeeded.
  const CoordinatorClient& client() const { return *client_; }
  // Sets what the heartbeats report. If the server holds a model, it asks for the incarnations at
  // once, because workers are about to connect.
  void Hold(Held held);
  // Sends the next heartbeat at once, and asks in it for the incarnations. Call this function when
  // a message has an unknown incarnation.
  void AskForIncarnations();
  // Waits for `pause`, but ends early if the job is over or the server must ask the coordinator.
  // Returns true if the job is over.
  bool IsOverAfter(Duration pause);

 private:
  // The replica of a shard that this server owns.
  struct Replica {
    uint32_t shard = 0;
    uint64_t since_epoch = 0;
    bool synced = false;
    bool operator==(const Replica&) const = default;
  };
  // Checks whether this server can use the job's object store. Sends heartbeats meanwhile, because
  // a store may take a minute to fail.
  absl::Status TryRunDir();
  // Registers with a coordinator that does not know this server, because it was restarted.
  absl::Status RegisterAgain();
  bool AsksForIncarnations();
  void TellReadiness();
  // Returns the outcome of a server that was told to end.
  Outcome OutcomeOfEnd();
  // Asks the coordinator that refused this server how the job ended. Returns true if the job is
  // over or continues without this server. Returns false if the coordinator has another job or does
  // not answer.
  bool HearsOutcome();
  // Returns the outcome with which WaitUntilOver ends after a heartbeat or registration with this
  // status. Returns nullopt if the server continues. `heard` is the time at which the coordinator
  // last answered.
  std::optional<Outcome> OutcomeOf(const absl::Status& status, Time heard);
  std::vector<Replica> FindReplicas();
  absl::Status Heartbeat(const std::vector<Replica>& replicas);
  Duration HeartbeatsApart() const;
  // Extends the server's lease to one lease after `sent`, the time at which the server sent a
  // message that the coordinator has answered.
  void ExtendLease(BootTime sent);

  const std::function<BootTime()> boot_now_;
  ParameterService& service_;
  // Join sets this field, which is constant afterwards.
  std::unique_ptr<CoordinatorClient> client_;
  std::function<void(bool)> tell_readiness_;
  // The readiness that was told last.
  bool told_ready_ = false;

  Mutex mutex_;
  CondVar changed_;
  bool joined_ GUARDED_BY(mutex_) = false;
  Held held_ GUARDED_BY(mutex_);
  bool over_ GUARDED_BY(mutex_) = false;
  bool leaves_ GUARDED_BY(mutex_) = false;
  v1::JobState job_outcome_ GUARDED_BY(mutex_) = v1::JOB_STARTING;
  bool asks_incarnations_ GUARDED_BY(mutex_) = false;
  // When the incarnations were last asked for.
  Time asked_incarnations_ GUARDED_BY(mutex_);
};

}  // namespace leeway
