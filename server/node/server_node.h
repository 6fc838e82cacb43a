// A server process without its main: the service of the data plane, the ShardControl service by
// which the coordinator commands it, and the heartbeats that keep its lease.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/mutex.h"
#include "common/service/admitted_service.h"
#include "common/service/server_queue.h"
#include "leeway/v1/coordinator.grpc.pb.h"
#include "server/node/held_model.h"
#include "server/service/parameter_service.h"

namespace leeway {

// Thread-safe.
class ServerNode final : public AdmittedService<v1::ShardControl::Service> {
 public:
  struct Options {
    uint32_t index = 0;
    // The address, as HOST:PORT, at which this server reaches the coordinator.
    std::string coordinator;
    // The address, as HOST:PORT, at which workers reach this server.
    std::string advertised;
    // The address at which processes of this host reach the server. Empty if there is no such
    // address.
    std::string local_address;
    // The identity of the host. Empty if local_address is empty.
    std::string host;
    // The identity of the network namespace (NetworkIdentity in common/rpc/host.h).
    std::string network;
    // The process's random name, which distinguishes a repeated registration from a new process.
    uint64_t nonce = 0;
    uint32_t pid = 0;
  };
  // How WaitUntilOver ended. kDrained means that Leave() was called.
  enum class Outcome { kShutDown, kCoordinatorLost, kReplaced, kDrained };

  // `boot_now` is the clock by which the server measures its lease.
  explicit ServerNode(std::function<BootTime()> boot_now = BootClock::now)
      : AdmittedService("leeway.v1.ShardControl"),
        boot_now_(boot_now),
        parameter_service_(std::move(boot_now)) {}
  ~ServerNode() override;

  ParameterService& parameter_service() { return parameter_service_; }

  // Registers with the coordinator. Tries until `deadline`. To be called once the services accept
  // calls.
  absl::Status Join(const Options& options, Time deadline);
  // Keeps the lease until the coordinator reports that the job is over, or until the coordinator
  // has not answered for limits.start_seconds. Registers again with a restarted coordinator.
  Outcome WaitUntilOver();
  // Makes one attempt to move this server's shards to other servers (DrainServer). Called from
  // another thread than WaitUntilOver, which continues meanwhile. Returns FAILED_PRECONDITION if
  // this server has not joined the job yet.
  absl::StatusOr<v1::DrainServerReply> AskToDrain(Duration limit);
  // Ends WaitUntilOver, or the next call of it. Thread-safe.
  void Leave();
  // `tell` is called in WaitUntilOver's thread whenever the readiness changes. A server is ready if
  // it holds its part of the model and is not leaving. To be called before WaitUntilOver.
  void OnReadiness(std::function<void(bool)> tell) { tell_readiness_ = std::move(tell); }
  // Returns how the job ended, as the coordinator reported it with kShutDown or when it refused
  // this server. Returns a state that is not an end if the coordinator did not report one, or if
  // the job continues without this server.
  v1::JobState job_outcome();

  // Accepts calls of both services on `queue` from now on. To be called once the gRPC server runs.
  // `queue` must outlive the services.
  void Await(ServerQueue* queue);
  // Answers all waiting requests, and ends the streams to other servers. To be called before the
  // queue stops.
  void Close();

 private:
  absl::Status Configure(const v1::ConfigureRequest& request);
  absl::Status SetLive(const v1::SetLiveRequest& request);
  absl::StatusOr<v1::SavedShard> Save(const v1::SaveRequest& request);
  absl::Status Shutdown(const v1::ShutdownRequest& request);
  // Makes one attempt to register with the coordinator.
  absl::StatusOr<v1::RegisterServerReply> Register(Duration limit, bool wait = true);
  // Checks whether this server can use the job's object store. Sends heartbeats meanwhile, because
  // a store may take a minute to fail.
  absl::Status TryRunDir();
  void BeatWhileTrying();
  // Registers with a coordinator that does not know this server, because it was restarted.
  absl::Status RegisterAgain();
  // Whether to accept a configuration, and how.
  enum class Take { kHere, kPlacement, kAll };
  absl::StatusOr<Take> HowToTake(const v1::ConfigureRequest& request) REQUIRES(configuring_);
  // Checks that the configuration can be accepted as it is, before anything is released.
  absl::Status CheckTakeable(const v1::ConfigureRequest& request, Take take) const
      REQUIRES(configuring_);
  // Releases the model of an older generation, and finishes its files.
  void Retire() REQUIRES(configuring_);
  absl::Status MakeModel(const v1::ConfigureRequest& request) REQUIRES(configuring_);
  absl::Status CheckJob(uint64_t job) const;
  absl::Status CheckJoined(uint64_t job);
  void ReportCut(uint64_t generation, uint32_t shard, uint64_t cut,
                 const absl::StatusOr<v1::SavedShard>& saved);
  // Waits for this time, or until the server must ask the coordinator or the job is over. Returns
  // whether the job is over.
  bool IsOverAfter(Duration pause);
  // Called for a message with an unknown incarnation. The next heartbeat is then sent at once and
  // asks for the incarnations.
  void AskForIncarnations();
  bool AsksForIncarnations();
  void TellReadiness();
  // The outcome of a server that was told to end.
  Outcome OutcomeOfEnd();
  // Asks the coordinator that refused this server how the job ended. Returns whether the job is
  // over or continues without this server, and false if the coordinator has another job or does not
  // answer.
  bool HearsOutcome();
  // Returns the outcome with which the result of a heartbeat or a registration ends the waiting, or
  // nullopt if the server continues. `heard` is the time at which the coordinator last answered.
  std::optional<Outcome> OutcomeOf(const absl::Status& status, Time heard);
  // The replica of a shard that this server owns.
  struct Replica {
    uint32_t shard = 0;
    uint64_t since_epoch = 0;
    bool synced = false;
    bool operator==(const Replica&) const = default;
  };
  std::vector<Replica> FindReplicas();
  absl::Status Heartbeat(const std::vector<Replica>& replicas);
  Duration HeartbeatsApart() const;

  const std::function<BootTime()> boot_now_;
  ParameterService parameter_service_;

  // Constant after Join.
  Options options_;
  v1::TrainingJob job_;
  uint64_t job_id_ = 0;
  std::string run_dir_;
  std::unique_ptr<v1::Coordinator::Stub> coordinator_;

  ServerQueue* queue_ = nullptr;
  std::function<void(bool)> tell_readiness_;
  // The readiness that was told last.
  bool told_ready_ = false;

  // Configuring and saving take long, so only one of them runs at a time.
  Mutex configuring_;
  std::unique_ptr<HeldModel> model_ GUARDED_BY(configuring_);
  // Work that was queued before Close() may still be carried out after it.
  bool closed_ GUARDED_BY(configuring_) = false;
  Mutex mutex_;
  CondVar changed_;
  bool joined_ GUARDED_BY(mutex_) = false;
  bool tried_run_dir_ GUARDED_BY(mutex_) = false;
  // What the heartbeats report about the model: its generation, its epoch and its replicated
  // shards.
  std::optional<uint64_t> held_generation_ GUARDED_BY(mutex_);
  std::optional<uint64_t> held_epoch_ GUARDED_BY(mutex_);
  std::vector<HeldModel::Replicated> replicated_ GUARDED_BY(mutex_);
  bool over_ GUARDED_BY(mutex_) = false;
  bool leaves_ GUARDED_BY(mutex_) = false;
  v1::JobState job_outcome_ GUARDED_BY(mutex_) = v1::JOB_STARTING;
  bool asks_incarnations_ GUARDED_BY(mutex_) = false;
  // When the incarnations were last asked for.
  Time asked_incarnations_ GUARDED_BY(mutex_);
};

}  // namespace leeway
