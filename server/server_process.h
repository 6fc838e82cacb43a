// All of a server but its command line: listening, the coordinator where it is server 0, joining
// the job, and the orderly end.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "leeway/v1/checkpoint.pb.h"
#include "leeway/v1/job.pb.h"
#include "server/coordinator/coordinator_host.h"
#include "server/rpc/server_queue.h"
#include "server/server_node.h"

namespace grpc {
class Server;
}

namespace leeway {

struct ServerOptions {
  uint32_t index = 0;
  // host:port to bind; port 0: any free one.
  std::string listen = "127.0.0.1:0";
  // Where workers reach the server; empty: the address bound.
  std::string advertise;
  // Servers 1 and up: server 0's address, and how long to look for it.
  std::string coordinator;
  Duration find_coordinator = std::chrono::seconds(120);
  // Server 0: the job (loaded and resolved), where metrics and checkpoints go, and whether to begin
  // a new job that goes on from the newest checkpoint there. A job of this run folder that is not
  // over, because the process before this one was killed, goes on by itself.
  v1::TrainingJob job;
  std::string run_dir;
  bool resume = false;
};

class ServerProcess {
 public:
  // Listens from now on.
  static absl::StatusOr<std::unique_ptr<ServerProcess>> Start(const ServerOptions& options);
  ~ServerProcess();

  const std::string& address() const { return address_; }
  // host:port of the job's coordinator.
  const std::string& coordinator() const { return coordinator_; }

  // Joins the job and serves until it is over; once. OK: the job ended as it should, or this is not
  // server 0, which alone knows.
  absl::Status Run();

  // What it holds of contributions, and what it has refused; thread-safe.
  ByteBudget::Load load() { return node_.parameter_service().budget().load(); }

 private:
  explicit ServerProcess(const ServerOptions& options) : options_(options) {}
  absl::Status StartCoordinator();
  // Whose run it is: of a new job, or of the one that a killed process has left.
  absl::Status TakeUpRun(CoordinatorOptions& options);
  // Puts codecs in place of `auto`: those of the run so far, none on one host. Else says what they
  // are to be chosen by when the workers are here.
  void PrepareAutoCodec(CoordinatorOptions& options) const;
  absl::Status GoOnAfter(const v1::CoordinatorRecord& record, CoordinatorOptions& options);
  absl::Status Listen();

  const ServerOptions options_;
  // The job had ended before this process began: nothing to do, and how it ended.
  std::optional<v1::CoordinatorRecord> ended_;
  std::string address_;
  // unix-abstract:NAME, for workers of this host; empty: not listening there.
  std::string local_address_;
  std::string coordinator_;
  // In the order of their making: the gRPC server goes before the services, they before the sink.
  std::unique_ptr<CheckpointSink> sink_;
  std::unique_ptr<CoordinatorHost> host_;
  ServerNode node_;
  grpc::ResourceQuota quota_{"leeway"};
  std::unique_ptr<ServerQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace leeway
