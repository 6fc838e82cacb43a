// A server without its command line. It listens, hosts the coordinator if it is server 0, joins the
// job, and ends in order.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/descriptor.h"
#include "common/rpc/connection_table.h"
#include "common/rpc/local_listener.h"
#include "common/rpc/tcp_port.h"
#include "common/service/connection_guard.h"
#include "common/service/doorkeeper.h"
#include "common/service/server_queue.h"
#include "leeway/v1/checkpoint.pb.h"
#include "leeway/v1/job.pb.h"
#include "server/coordinator/coordinator_host.h"
#include "server/node/ended_job.h"
#include "server/node/server_end.h"
#include "server/node/server_node.h"

namespace grpc {
class Server;
}

namespace leeway {

struct ServerOptions {
  uint32_t index = 0;
  // HOST:PORT to bind. Port 0 stands for any free port.
  std::string listen = "127.0.0.1:0";
  // The address at which workers reach the server. If empty, it is the bound address, or the
  // address on the route to the coordinator (server/node/listening.h). Port 0 stands for the bound
  // port.
  std::string advertise;
  // For servers 1 and up: server 0's address.
  std::string coordinator;
  // How long to look for the coordinator, and to wait for a taken port.
  Duration start_within = std::chrono::seconds(120);
  // Called to wait between two attempts to use a taken port. If it returns false, the server stops
  // trying.
  std::function<bool(Duration)> pause = [](Duration duration) {
    std::this_thread::sleep_for(duration);
    return true;
  };
  // The clocks of the coordinator, and of the server for its lease.
  std::function<Time()> now = SteadyNow;
  std::function<BootTime()> boot_now = BootClock::now;
  // For server 0: the job, loaded and resolved.
  v1::TrainingJob job;
  // For server 0: the folder for metrics and checkpoints.
  std::string run_dir;
  // For server 0: whether to begin a new job from the newest checkpoint in the run folder. If the
  // job of the run folder is not over, because the previous process was killed, it continues
  // without this flag.
  bool resume = false;
  // Whether a run that was stopped, or that failed for a temporary reason, continues from its
  // newest checkpoint. Any other run behaves as without this flag, so every life of server 0 may
  // have it.
  bool resumes_ended = false;
  // For servers 1 and up, if they know it: the folder with the coordinator's record. If the
  // coordinator is not found, the record says whether the job is over.
  std::string record_dir;
  // Whether the process that started this one writes the model and the summary.
  bool leaves_outcome = false;
};

class ServerProcess {
 public:
  // Listens from now on.
  static absl::StatusOr<std::unique_ptr<ServerProcess>> Start(const ServerOptions& options);
  ~ServerProcess();

  const std::string& address() const { return address_; }
  // HOST:PORT of the job's coordinator.
  const std::string& coordinator() const { return coordinator_; }

  // Joins the job and serves until it is over. To be called once. Server 0 then writes the model
  // and the summary, unless the options leave that to another process.
  ServerEnd Run();

  // `tell` is called with whether the server holds its part of the model, whenever that changes. To
  // be called before Run.
  void OnReadiness(std::function<void(bool)> tell) { node_.OnReadiness(std::move(tell)); }

  // Moves this server's shards to other servers, within `within` at most, and ends Run with
  // kExitTerminated. Called from another thread than Run. `pause` waits between attempts; if it
  // returns false, or if the server has not joined the job yet, Drain returns false and ends
  // nothing.
  bool Drain(Duration within, const std::function<bool(Duration)>& pause);

  // Ends Run with kExitTerminated at once, without telling any other process. Called from another
  // thread than Run.
  void Leave() { node_.Leave(); }

  // How many contributions the server holds, and how many it has refused. Thread-safe.
  ByteBudget::Load load() { return node_.parameter_service().table().budget().load(); }

 private:
  explicit ServerProcess(const ServerOptions& options) : options_(options) {}
  absl::Status StartCoordinator();
  // Decides which run this is: a new job, or the job that a killed process has left.
  absl::Status TakeUpRun(CoordinatorOptions& options);
  // Replaces `auto` by the codecs of the run so far, or by none on one host. Otherwise sets how to
  // choose the codecs once the workers are here.
  void PrepareAutoCodec(CoordinatorOptions& options) const;
  absl::Status GoOnAfter(const v1::CoordinatorRecord& record, CoordinatorOptions& options);
  // Waits until the server can listen. Returns ABORTED if another process serves this run at the
  // address.
  absl::Status AwaitAddress() const;
  // Waits until no other process runs a job in the run folder.
  absl::Status AwaitRun();
  absl::Status Listen();
  absl::Status Join();
  // Returns how a server ends that could not join the job.
  ServerEnd EndOfLate(const absl::Status& joined);
  // Listens for processes of this host. If this is impossible, those processes use TCP.
  void ListenLocally();
  // How server 0 ends once the job is over.
  ServerEnd EndJob(v1::JobState outcome, const std::string& message) const;

  const ServerOptions options_;
  // How the job ended, if it was over before this process began. There is then nothing to do.
  std::optional<v1::CoordinatorRecord> ended_;
  std::string address_;
  // The address at which other processes reach the server.
  std::string advertised_;
  // The address unix-abstract:NAME for workers of this host. Empty if the server does not listen
  // there.
  std::string local_address_;
  std::string coordinator_;
  // The lock of the run folder, for server 0. Absent if the run is in an object store.
  std::optional<Descriptor> run_lock_;
  // In the order of construction. The gRPC server is destroyed before the services, and the
  // services before the sink.
  std::unique_ptr<CheckpointSink> sink_;
  std::unique_ptr<CoordinatorHost> host_;
  // Used in place of the host if the job had ended and the other processes do not know.
  std::unique_ptr<EndedJob> ended_job_;
  ServerNode node_{options_.boot_now};
  grpc::ResourceQuota quota_{"leeway"};
  // Until the job is known, there is room only for connections that do not belong to the job.
  ConnectionTable connections_{{.most = ConnectionsMost(0, FilesMost())}, TcpSockets()};
  Doorkeeper doorkeeper_{ProcessSecurity().settings(), &connections_};
  std::unique_ptr<ServerQueue> queue_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connection_gate_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<TcpPort> port_;
  std::unique_ptr<LocalListener> local_listener_;
  std::unique_ptr<ConnectionGuard> guard_;
};

}  // namespace leeway
