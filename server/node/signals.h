// How a server reacts to signals. SIGTERM means that this server is to leave, and the others take
// over its shards. SIGINT and SIGHUP come from a person's terminal and concern the whole job.
#pragma once

#include <atomic>
#include <csignal>
#include <string>
#include <thread>

#include "common/clock.h"
#include "leeway/v1/coordinator.grpc.pb.h"
#include "server/node/server_process.h"

namespace leeway {

// Blocks the three signals in all threads for as long as it lives. To be made before any other
// thread.
class Signals {
 public:
  Signals();
  ~Signals() { Unwatch(); }

  // To be used before Watch. Returns false if a signal has come.
  bool Sleep(Duration pause);

  // Reacts to signals from now on. SIGTERM: `process` is drained, for `grace` at most. A second
  // signal meanwhile ends it at once, as does a signal before it has joined the job. Another
  // signal: the coordinator is asked for an orderly stop of the job. Lasts until Unwatch();
  // `process` must live until then.
  void Watch(ServerProcess& process, Duration grace);
  void Unwatch();

 private:
  void Answer(ServerProcess& process, Duration grace, int signal);
  void AskForStop(const std::string& coordinator, int signal);

  sigset_t signals_;
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

}  // namespace leeway
