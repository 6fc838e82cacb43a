// The program leeway-server without its command line and its signals: a server
// (server/node/server_node.h) with a process of its own. In server 0 the process also has the
// coordinator.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/descriptor.h"
#include "leeway/v1/checkpoint.pb.h"
#include "leeway/v1/job.pb.h"
#include "server/coordinator/coordinator_host.h"
#include "server/node/ended_job.h"
#include "server/node/server_end.h"
#include "server/node/server_node.h"

namespace leeway {

struct ServerOptions : NodeOptions {
  // For server 0: the job, loaded and resolved.
  v1::TrainingJob job;
  // For server 0: the folder for metrics and checkpoints.
  std::string run_dir;
  // If true, a new job begins from the newest checkpoint in the run folder. If the run folder's job
  // is not over, because the previous process was killed, that job continues with or without this
  // flag.
  bool resume = false;
  // If true, a run that was stopped, or that failed for a temporary reason, continues from its
  // newest checkpoint. The flag has no effect on any other run, so every life of server 0 may have
  // it.
  bool resumes_ended = false;
  // True if the process that started this one writes the model and the summary.
  bool leaves_outcome = false;
  // The coordinator's clock.
  std::function<Time()> now = SteadyNow;
  // For servers 1 and up, if they know it: the folder with the coordinator's record. A server that
  // does not find the coordinator reads in the record whether the job is over.
  std::string record_dir;
};

class ServerProcess {
 public:
  // Listens from now on.
  static absl::StatusOr<std::unique_ptr<ServerProcess>> Start(const ServerOptions& options);

  // The addresses of this server and of the job's coordinator, as HOST:PORT. Empty if the job had
  // ended before this process began, and no other process needs to be told so.
  std::string address() const { return node_ != nullptr ? node_->address() : ""; }
  std::string coordinator() const { return node_ != nullptr ? node_->coordinator() : ""; }

  // Joins the job and serves until it is over. Call this once. Server 0 then writes the model and
  // the summary, unless the options leave that to another process.
  ServerEnd Run();

  // Does the same as ServerMembership::OnReadiness. Call this function before Run.
  void OnReadiness(std::function<void(bool)> tell) {
    if (node_ != nullptr) node_->OnReadiness(std::move(tell));
  }

  // Does the same as ServerMembership::Drain. Run then ends with kExitTerminated. Call this
  // function while Run runs on another thread.
  bool Drain(Duration within, const std::function<bool(Duration)>& pause) {
    return node_ != nullptr && node_->Drain(within, pause);
  }

  // Ends Run, which runs on another thread, with kExitTerminated at once. Tells no other process.
  void Leave() {
    if (node_ != nullptr) node_->Leave();
  }

  // Does the same as ServerNode::load. Thread-safe.
  ByteBudget::Load load() { return node_ != nullptr ? node_->load() : ByteBudget::Load(); }

 private:
  explicit ServerProcess(const ServerOptions& options) : options_(options) {}
  absl::Status StartCoordinator();
  // Decides which run this is: a new job, or the job that a killed process has left.
  absl::Status TakeUpRun(CoordinatorOptions& options);
  absl::Status GoOnAfter(const v1::CoordinatorRecord& record, CoordinatorOptions& options);
  // Replaces `auto` with the codecs that this run already has, or with no codec if all processes
  // are on one host. Otherwise sets how to choose the codecs after the workers have registered.
  void PrepareAutoCodec(CoordinatorOptions& options) const;
  absl::Status WriteFirstRecord(const CoordinatorOptions& options);
  // Waits until no other process runs a job in the run folder.
  absl::Status AwaitRun();
  // The services that are served beside server 0's own.
  ServerPort::Services CoordinatorServices();
  // Ends server 0 if its job had ended before, and tells the other processes.
  ServerEnd TellEnd();
  // Returns how server 0 ends once the job is over.
  ServerEnd EndJob(v1::JobState outcome, const std::string& message) const;
  // Waits until the server can listen. Returns ABORTED if another process serves this run at the
  // address.
  absl::Status AwaitAddress() const;
  // Returns the end of a server that could not join the job.
  ServerEnd EndOfLate(const absl::Status& joined);

  const ServerOptions options_;
  // How the job ended, if it was over before this process began.
  std::optional<v1::CoordinatorRecord> ended_;
  // The lock of the run folder, for server 0. Absent if the run is in an object store.
  std::optional<Descriptor> run_lock_;
  // These members are in the order of construction: the node serves the host, and the host uses the
  // sink.
  std::unique_ptr<CheckpointSink> sink_;
  std::unique_ptr<CoordinatorHost> host_;
  // Takes the host's place if the job had ended before this process began, and other processes
  // still have to be told so.
  std::unique_ptr<EndedJob> ended_job_;
  std::unique_ptr<ServerNode> node_;
};

}  // namespace leeway
