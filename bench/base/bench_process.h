// A process of a benchmark: a fork of the process that directs it. It reads orders, one line of
// JSON after the other. The director itself never starts a thread or makes a gRPC object. So it may
// fork at any time, and every measured process is a fresh one. Everything that needs threads is a
// bench process, too.
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
  // Sent to the director once.
  Json hello;
  // Answers a request. Requests come one at a time, on the child's main thread.
  std::function<absl::StatusOr<Json>(const Json& request)> handle;
};

// Not thread-safe.
class BenchProcess {
 public:
  // Forks. The child runs `make`, says its hello, and answers requests until it is told to quit.
  // The kernel kills it if the director dies. An error of `make` is returned by Start. `name` is
  // for messages.
  static absl::StatusOr<std::unique_ptr<BenchProcess>> Start(
      std::string name, const std::function<absl::StatusOr<BenchService>()>& make);
  // Tells the child to quit, and kills it if it has not ended within some seconds.
  ~BenchProcess();
  BenchProcess(const BenchProcess&) = delete;
  BenchProcess& operator=(const BenchProcess&) = delete;

  pid_t pid() const { return pid_; }
  const Json& hello() const { return hello_; }

  absl::Status Send(const Json& request);
  // The answer to the earliest request without one. UNAVAILABLE if the child has died,
  // DEADLINE_EXCEEDED after `limit`, otherwise the handler's own error.
  absl::StatusOr<Json> Receive(Duration limit = kAnswerWithin);
  absl::StatusOr<Json> Call(const Json& request, Duration limit = kAnswerWithin);

  // The longest time for starting, warming up and cleaning up.
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

// The limit for an answer that should take about `seconds`: a loaded machine may need several times
// that.
inline Duration AnswerWithin(double seconds) {
  return BenchProcess::kAnswerWithin + FromSeconds(4 * seconds);
}

}  // namespace leeway
