// A server's calls to the coordinator of its job. Each call carries the server's identity.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <grpcpp/channel.h>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "leeway/v1/coordinator.grpc.pb.h"

namespace leeway {

// Thread-safe once Serve() has returned.
class CoordinatorClient {
 public:
  struct Identity {
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
    // The server's random name, which distinguishes a repeated registration from a new server.
    uint64_t nonce = 0;
    uint32_t pid = 0;
    // Whether the server is in the process of a worker.
    bool of_worker = false;
  };
  // The job that the server has joined. Constant from then on.
  struct Served {
    uint64_t id = 0;
    v1::TrainingJob job;
    std::string run_dir;
  };

  CoordinatorClient(Identity self, std::shared_ptr<grpc::Channel> channel);
  const Identity& self() const { return self_; }
  const Served& served() const { return served_; }
  // Sets the job that later calls are about.
  void Serve(const v1::RegisterServerReply& reply);
  // Returns FAILED_PRECONDITION unless `job` is the job that this server has joined.
  absl::Status CheckJob(uint64_t job) const;

  // Each of these calls makes one attempt, which takes at most `limit`. If `wait` is true, the call
  // waits for a connection. `held` is the generation of the model on this server, if it has one.
  absl::StatusOr<v1::RegisterServerReply> Register(std::optional<uint64_t> held, Duration limit,
                                                   bool wait = true) const;
  absl::StatusOr<v1::ServerHeartbeatReply> Heartbeat(v1::ServerHeartbeatRequest request,
                                                     Duration limit) const;
  absl::StatusOr<v1::DrainServerReply> Drain(Duration limit) const;
  absl::StatusOr<v1::JobStatus> Status(Duration limit) const;
  // Reports a shard's part of a cut. Repeats a failed attempt, because a broken connection or a
  // short absence of the coordinator must not cost a checkpoint. `pause` waits between two
  // attempts. If it returns false, no further attempt is made.
  absl::Status ReportSaved(v1::ShardSavedRequest request,
                           std::function<bool(Duration)> pause) const;

 private:
  const Identity self_;
  const std::unique_ptr<v1::Coordinator::Stub> stub_;
  Served served_;
};

}  // namespace leeway
