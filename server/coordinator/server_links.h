// The coordinator's ways to the servers: to each one a link, by which it is told what to do, and a
// watch, which sees its process end.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "common/clock.h"
#include "server/coordinator/control_link.h"
#include "server/coordinator/core/command.h"
#include "server/coordinator/core/command_answer.h"
#include "server/coordinator/server_watch.h"

namespace leeway {

// Not thread-safe: of one thread. A server that is not connected is told nothing: nobody is there
// to be told, and what it holds is made anew when it comes back.
class ServerLinks {
 public:
  // Servers 0 to `most` - 1. `answer` hears how calls went, on the links' and the watches' threads.
  ServerLinks(uint64_t job, uint32_t most, std::function<Time()> now,
              std::function<void(const CommandAnswer&)> answer);

  void Do(const ConnectServer& command);
  void Do(const DisconnectServer& command);
  void Do(const ConfigureServer& command);
  void Do(const SetLive& command);
  void Do(const CommitSet& command);
  void Do(const SaveAll& command);
  void Do(const ShutdownServers& command);
  // Ends them all; `answer` is not called any more when it returns.
  void Close();

 private:
  // Sees the end of the server's process from now on.
  void Watch(const ConnectServer& command);
  void Unwatch(uint32_t server);

  const uint64_t job_;
  const std::function<Time()> now_;
  const std::function<void(const CommandAnswer&)> answer_;
  // By server, null before it has registered and while it is lost.
  std::vector<std::unique_ptr<ControlLink>> links_;
  // The same; and those that were stopped, until they are over. None of server 0, which this is.
  std::vector<std::unique_ptr<ServerWatch>> watches_;
  std::vector<std::unique_ptr<ServerWatch>> stopped_watches_;
};

}  // namespace leeway
