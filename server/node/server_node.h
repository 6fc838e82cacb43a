// A server of a job, in any process: open this header first. It listens, joins the job, holds and
// serves its part of the model, replicates it, writes its cuts, is drained, and ends.
//
// The owner of the process takes care of everything that concerns the whole process: signals, exit
// codes, standard files, the mode of new files, and the set-up of logs. So a process may have
// several nodes, each with an identity of its own, and nodes may begin and end while the process
// goes on.
//
//   auto node = ServerNode::Start({.index = 1, .coordinator = address});
//   absl::Status joined = (*node)->Join();
//   ... in a thread: (*node)->WaitUntilOver() ...
//   (*node)->Drain(within, pause);                 // or Leave(), or the job ends
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/peers/meeting_place.h"
#include "common/peers/outbox.h"
#include "common/rpc/transport_security.h"
#include "leeway/v1/coordinator.pb.h"
#include "leeway/v1/job.pb.h"
#include "server/node/control_service.h"
#include "server/node/server_membership.h"
#include "server/node/server_port.h"
#include "server/service/parameter_service.h"

namespace leeway {

struct NodeOptions {
  uint32_t index = 0;
  // HOST:PORT to bind. Port 0 stands for any free port.
  std::string listen = "127.0.0.1:0";
  // Whether the server is in a worker's process, because the workers hold the blocks.
  bool of_worker = false;
  // The address at which workers reach the server. If empty, it is the bound address, or the
  // address on the route to the coordinator (server/node/listening.h). Port 0 stands for the bound
  // port.
  std::string advertise = {};
  // For servers 1 and up: server 0's address.
  std::string coordinator = {};
  // The time limit for finding the coordinator and this machine's address.
  Duration start_within = std::chrono::seconds(120);
  // Called to wait between two attempts to listen. If it returns false, the server stops trying.
  std::function<bool(Duration)> pause = [](Duration duration) {
    std::this_thread::sleep_for(duration);
    return true;
  };
  // The clock by which the server measures its lease.
  std::function<BootTime()> boot_now = BootClock::now;
  // The credentials and tokens of this server's port and channels. They must outlive the server. If
  // null, those of the process are used.
  const TransportSecurity* security = nullptr;
  // Join calls this function with the job, before anything is written. If the job is private, the
  // function makes new files private (common/files/private_files.h).
  std::function<void(const v1::TrainingJob&)> on_job = {};
};

// Thread-safe.
class ServerNode {
 public:
  using Outcome = ServerMembership::Outcome;

  // Starts a node that listens from now on. Serves `more` at the same address, too, and closes it
  // last.
  static absl::StatusOr<std::unique_ptr<ServerNode>> Start(
      const NodeOptions& options, std::vector<ServerPort::Services> more = {});

  // HOST:PORT of this server, as it is bound.
  std::string address() const;
  // HOST:PORT of the job's coordinator.
  std::string coordinator() const;

  // Joins the job, within NodeOptions::start_within. Call this once.
  absl::Status Join();
  // Methods of ServerMembership. Call WaitUntilOver and job_outcome after Join, and OnReadiness
  // before WaitUntilOver.
  Outcome WaitUntilOver() { return membership_.WaitUntilOver(); }
  v1::JobState job_outcome() { return membership_.job_outcome(); }
  void OnReadiness(std::function<void(bool)> tell) { membership_.OnReadiness(std::move(tell)); }
  bool Drain(Duration within, const std::function<bool(Duration)>& pause) {
    return membership_.Drain(within, pause);
  }
  void Leave() { membership_.Leave(); }

  // What the worker in this process publishes for other workers, and the weights that they meet.
  // Only with NodeOptions::of_worker.
  Outbox& pieces() { return data_.peers()->pieces; }
  MeetingPlace& meetings() { return data_.peers()->meetings; }

  // Returns how much memory received messages take, and what was refused for lack of it.
  ByteBudget::Load load() { return data_.table().budget().load(); }

 private:
  explicit ServerNode(const NodeOptions& options);

  const NodeOptions options_;
  const TransportSecurity& security_;
  // The address at which other processes reach the server.
  std::string advertised_;
  ParameterService data_{options_.boot_now};
  ServerMembership membership_{options_.boot_now, data_};
  ControlService control_{data_, membership_, security_};
  // Uses the services, so it is declared last to be destroyed first.
  std::unique_ptr<ServerPort> port_;
};

}  // namespace leeway
