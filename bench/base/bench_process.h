// A process of a benchmark: a fork of the one that directs it, which does what it is told in one
// line of JSON after the other. The director itself never starts a thread or makes a gRPC object,
// so that it may fork at any time and every process that is measured is a fresh one: whatever needs
// threads is a bench process too.
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

// What a child does.
struct BenchService {
  // For the director, once.
  Json hello;
  // Answers a request; one at a time, on the child's main thread.
  std::function<absl::StatusOr<Json>(const Json& request)> handle;
};

// Not thread-safe.
class BenchProcess {
 public:
  // Forks. The child runs `make`, says its hello and answers requests until it is told to quit; it
  // is killed by the kernel if the director dies. The error of `make` comes back as Start's. `name`
  // is for messages.
  static absl::StatusOr<std::unique_ptr<BenchProcess>> Start(
      std::string name, const std::function<absl::StatusOr<BenchService>()>& make);
  // Tells the child to quit, and kills it if it does not within some seconds.
  ~BenchProcess();
  BenchProcess(const BenchProcess&) = delete;
  BenchProcess& operator=(const BenchProcess&) = delete;

  pid_t pid() const { return pid_; }
  const Json& hello() const { return hello_; }

  absl::Status Send(const Json& request);
  // The answer to the earliest request that has none. UNAVAILABLE if the child has died,
  // DEADLINE_EXCEEDED after `limit`, else the handler's own error.
  absl::StatusOr<Json> Receive(Duration limit = kAnswerWithin);
  absl::StatusOr<Json> Call(const Json& request, Duration limit = kAnswerWithin);

  // What starting, warming up and cleaning up may take.
  static constexpr Duration kAnswerWithin = std::chrono::seconds(300);

 private:
  BenchProcess(std::string name, pid_t pid, int fd) : name_(std::move(name)), pid_(pid), fd_(fd) {}

  const std::string name_;
  const pid_t pid_;
  const int fd_;
  // Received beyond the last line taken.
  std::string received_;
  Json hello_;
};

// For an answer to what should take about `seconds`: a loaded machine may need several times that.
inline Duration AnswerWithin(double seconds) {
  return BenchProcess::kAnswerWithin + FromSeconds(4 * seconds);
}

}  // namespace leeway
