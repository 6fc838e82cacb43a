// What a server does about signals. SIGTERM means that this server is to go: the others take over
// what it holds. SIGINT and SIGHUP come from a person's terminal, and mean the whole job.
#pragma once

#include <atomic>
#include <csignal>
#include <string>
#include <thread>

#include "common/clock.h"
#include "leeway/v1/coordinator.grpc.pb.h"
#include "server/node/server_process.h"

namespace leeway {

// Takes the three from all threads for as long as it lives. Make it before any other thread.
class Signals {
 public:
  Signals();
  ~Signals() { Unwatch(); }

  // Before Watch. False: one of them has come.
  bool Sleep(Duration pause);

  // From now on. SIGTERM: `process` is drained, for `grace` at most; a second signal meanwhile ends
  // it at once, as does one before it has joined the job. Another signal: its coordinator is asked
  // for an orderly stop of the job. Until Unwatch(), before which `process` must not go.
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
