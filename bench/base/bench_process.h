// A process of a benchmark. The director, the process that runs the benchmark, starts it with
// fork(). It reads requests, each of them a line of JSON. The director itself never starts a thread
// or makes a gRPC object. So the director may fork at any time, and every measured process starts
// fresh. All work that needs threads runs in a bench process.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>
#include <sys/types.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"

namespace leeway {

using Json = nlohmann::json;

// The work of a child.
struct BenchService {
  // The child's first message to the director, sent once.
  Json hello;
  // Answers a request. Requests come one at a time, on the child's main thread.
  std::function<absl::StatusOr<Json>(const Json& request)> handle;
};

// Not thread-safe.
class BenchProcess {
 public:
  // Forks. The child runs `make`, sends its hello, and answers requests until the director tells it
  // to quit. The kernel kills the child if the director dies. If `make` fails, Start returns its
  // error. Messages call the process `name`.
  static absl::StatusOr<std::unique_ptr<BenchProcess>> Start(
      std::string name, const std::function<absl::StatusOr<BenchService>()>& make);
  // Tells the child to quit, and kills it if it has not ended within some seconds.
  ~BenchProcess();
  BenchProcess(const BenchProcess&) = delete;
  BenchProcess& operator=(const BenchProcess&) = delete;

  pid_t pid() const { return pid_; }
  const Json& hello() const { return hello_; }

  absl::Status Send(const Json& request);
  // Returns the answer to the earliest request that is still unanswered. Returns UNAVAILABLE if the
  // child has died, DEADLINE_EXCEEDED after `limit`, or the handler's own error.
  absl::StatusOr<Json> Receive(Duration limit = kAnswerWithin);
  absl::StatusOr<Json> Call(const Json& request, Duration limit = kAnswerWithin);

  // The time limit for an answer. It is enough for starting, warming up and cleaning up.
  static constexpr Duration kAnswerWithin = std::chrono::seconds(300);

 private:
  BenchProcess(std::string name, pid_t pid, int fd) : name_(std::move(name)), pid_(pid), fd_(fd) {}

  const std::string name_;
  const pid_t pid_;
  const int fd_;
  // Bytes received beyond the last line that was taken.
  std::string received_;
  Json hello_;
};

// Returns the time limit for an answer that should take about `seconds`. The limit is several times
// longer, because a loaded machine may need that much.
inline Duration AnswerWithin(double seconds) {
  return BenchProcess::kAnswerWithin + FromSeconds(4 * seconds);
}

}  // namespace leeway
