// Reacts to the signals of a server. SIGTERM means that this server must leave and that other
// servers take over its shards. SIGINT and SIGHUP come from a person's terminal and concern the
// whole job.
#pragma once

#include <atomic>
#include <csignal>
#include <string>
#include <thread>

#include "common/clock.h"
#include "leeway/v1/coordinator.grpc.pb.h"
#include "server/node/server_process.h"

namespace leeway {

// Blocks the three signals in all threads while the object exists. To be made before any other
// thread.
class Signals {
 public:
  Signals();
  ~Signals() { Unwatch(); }

  // Waits for `pause`. Returns false as soon as a signal has come. For use before Watch.
  bool Sleep(Duration pause);

  // Reacts to signals until Unwatch(). `process` must exist until then. On SIGTERM, drains
  // `process` for at most `grace`. During that time a second SIGTERM ends the process at once.
  // Before the process has joined the job, the first SIGTERM does so. On another signal, asks the
  // coordinator for an orderly stop of the job; a second signal repeats the request.
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
