// The launcher's connection to the coordinator.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// Asks without blocking. For a poll loop, a file descriptor shows when an answer has come. Not
// thread-safe.
class CoordinatorClient {
 public:
  // `address` is host:port. The client connects when it is first used.
  static absl::StatusOr<std::unique_ptr<CoordinatorClient>> Connect(const std::string& address);
  // Cancels the calls in flight and waits briefly until gRPC has released them.
  ~CoordinatorClient();
  CoordinatorClient(const CoordinatorClient&) = delete;
  CoordinatorClient& operator=(const CoordinatorClient&) = delete;

  // Asks for the job's status. Does nothing if the previous request is still unanswered.
  void AskStatus();
  // Returns a file descriptor that is readable when there is an answer to take.
  int fd() const;
  // Returns each new status once. Returns nothing if no new status has arrived or the coordinator
  // did not answer.
  std::optional<v1::JobStatus> TakeStatus();
  // Requests an orderly stop with a checkpoint. The request is sent again with each AskStatus until
  // the coordinator answers it.
  void RequestStop(const std::string& reason);

 private:
  struct State;
  explicit CoordinatorClient(std::unique_ptr<State> state);
  // The state that the calls in flight use.
  const std::unique_ptr<State> state_;
};

// Requests another number of servers (Coordinator.ResizeServers). Returns the number that was
// requested before.
absl::StatusOr<uint32_t> RequestServers(const std::string& address, uint32_t servers,
                                        Duration timeout);
// Requests an orderly stop (Coordinator.StopJob).
absl::Status RequestStop(const std::string& address, const std::string& reason, Duration timeout);
// Asks for the job's status and waits for the answer.
absl::StatusOr<v1::JobStatus> FetchJobStatus(const std::string& address, Duration timeout);

}  // namespace leeway
