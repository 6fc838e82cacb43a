// A worker's part in a job: its connections to the servers, to the workers of its host and to the
// coordinator. The heartbeats keep the worker's lease, and tell the stop gate and the client what
// the coordinator decides. The clock loop (clock_loop.h) is built on this.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "client/calls/contribution_memory.h"
#include "client/calls/host_group.h"
#include "client/calls/parameter_client.h"
#include "client/calls/peer_calls.h"
#include "client/participant/stop_gate.h"
#include "client/session/coordinator_session.h"
#include "client/session/leased_batches.h"
#include "client/transport/transport.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// Serves one registration. Not thread-safe, except the functions that the heartbeats call.
class Participant {
 public:
  // The session is registered, and its heartbeats have not started yet. `contributions` is null if
  // the worker sends its own contribution (workers.per_host). If `transport` is null, it is gRPC.
  // References outlive the participant.
  Participant(const v1::RegisterWorkerReply& registration, CoordinatorSession& session,
              ContributionMemory* contributions = nullptr, TransportFactory transport = nullptr);
  // Ends the heartbeats, then the client. Destroy the exchange after the participant, because the
  // client's calls may use the exchange's vectors until the client has ended.
  ~Participant();

  absl::Status Open();
  // Starts the heartbeats. Call this after Open(), and once.
  void StartHeartbeats();

  const v1::RegisterWorkerReply& registration() const { return registration_; }
  CoordinatorSession& session() { return session_; }
  StopGate& gate() { return gate_; }
  // Call these after Open(). The group is null if the worker sends its own contribution, and the
  // leases are null if the number of the step decides which batch is next.
  ParameterClient& client() { return *client_; }
  HostGroup* group() { return group_.get(); }
  // Null unless the workers exchange with each other.
  PeerCalls* peers() { return peers_.get(); }
  LeasedBatches* leases() const { return leases_.get(); }

  // Returns true if the job must stop and AskWhereToStop has not asked for the clock yet.
  bool IsToAskWhereToStop() const;
  // Asks at which clock to stop. The worker is at `clock`, between two exchanges.
  absl::Status AskWhereToStop(uint64_t clock);
  // Reports the batches that are done. Call this after the last clock, even after an error: other
  // workers train again on batches that are not reported.
  void ReportDone();
  // Returns what the worker waits for. Thread-safe.
  std::string Waiting() const;

 private:
  absl::Status OpenGroup();
  void OpenPeers();
  // Ends all waiting for other processes.
  void BreakOff();

  const v1::RegisterWorkerReply& registration_;
  CoordinatorSession& session_;
  ContributionMemory* const contributions_;
  const TransportFactory transport_;
  std::unique_ptr<ParameterClient> client_;
  // Refers to the client's layout.
  std::unique_ptr<HostGroup> group_;
  std::unique_ptr<PeerCalls> peers_;
  // Null if data is not leased.
  std::unique_ptr<LeasedBatches> leases_;
  // Thread-safe: the heartbeats' thread uses it and, through it, the client.
  StopGate gate_;
  bool asked_where_to_stop_ = false;
};

}  // namespace leeway
