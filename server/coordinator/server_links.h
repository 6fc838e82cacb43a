// The coordinator's connections to the servers. Each server has a link, by which it is told what to
// do, and a watch, which sees its process end.
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

// Not thread-safe: one thread uses it. A server that is not connected is told nothing. It holds no
// valid state: it gets its blocks anew when it comes back.
class ServerLinks {
 public:
  // Covers servers 0 to `most` - 1. `answer` is called with how calls went, on the threads of the
  // links and the watches.
  ServerLinks(uint64_t job, uint32_t most, std::function<Time()> now,
              std::function<void(const CommandAnswer&)> answer);

  void Do(const ConnectServer& command);
  void Do(const DisconnectServer& command);
  void Do(const ConfigureServer& command);
  void Do(const SetLive& command);
  void Do(const CommitSet& command);
  void Do(const SaveAll& command);
  void Do(const ShutdownServers& command);
  // Ends all links and watches. `answer` is not called after this returns.
  void Close();

 private:
  // Begins to watch the server's process.
  void Watch(const ConnectServer& command);
  void Unwatch(uint32_t server);

  const uint64_t job_;
  const std::function<Time()> now_;
  const std::function<void(const CommandAnswer&)> answer_;
  // By server; null before the server has registered and while it is lost.
  std::vector<std::unique_ptr<ControlLink>> links_;
  // By server, like links_. Server 0 has no watch, because it is this process. Stopped watches are
  // kept until they are over.
  std::vector<std::unique_ptr<ServerWatch>> watches_;
  std::vector<std::unique_ptr<ServerWatch>> stopped_watches_;
};

}  // namespace leeway
