// The launcher's line to the coordinator.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// Asks without blocking: answers are announced on a descriptor, for a poll loop. Not thread-safe.
class CoordinatorClient {
 public:
  // `address`: host:port. Connects when first used.
  static absl::StatusOr<std::unique_ptr<CoordinatorClient>> Connect(const std::string& address);
  // Gives up what is in flight, and waits until gRPC has let go of it (at once).
  ~CoordinatorClient();
  CoordinatorClient(const CoordinatorClient&) = delete;
  CoordinatorClient& operator=(const CoordinatorClient&) = delete;

  // Asks for the job's status; nothing if the last answer is still out.
  void AskStatus();
  // Readable when there is an answer to take.
  int fd() const;
  // The newest status, once; absent if there is none or the coordinator did not answer.
  std::optional<v1::JobStatus> TakeStatus();
  // Asks for an orderly stop with a checkpoint; sent again with each AskStatus until it is
  // answered.
  void RequestStop(const std::string& reason);

 private:
  struct State;
  explicit CoordinatorClient(std::unique_ptr<State> state);
  // Used by the calls in flight.
  const std::unique_ptr<State> state_;
};

// Asks for another number of servers (Coordinator.ResizeServers); how many were asked for before.
absl::StatusOr<uint32_t> RequestServers(const std::string& address, uint32_t servers,
                                        Duration timeout);
// Asks for an orderly stop (Coordinator.StopJob).
absl::Status RequestStop(const std::string& address, const std::string& reason, Duration timeout);
// One status, waited for.
absl::StatusOr<v1::JobStatus> FetchJobStatus(const std::string& address, Duration timeout);

}  // namespace leeway
