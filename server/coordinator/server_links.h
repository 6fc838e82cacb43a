// The coordinator's connections to the servers. For each server there is a link, through which the
// coordinator calls the server, and a watch, which notices when the server's process ends.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "common/clock.h"
#include "common/rpc/transport_security.h"
#include "server/coordinator/control_link.h"
#include "server/coordinator/core/command.h"
#include "server/coordinator/core/command_answer.h"
#include "server/coordinator/server_watch.h"

namespace leeway {

// Not thread-safe: one thread uses it. Commands to a server that is not connected are dropped,
// because such a server holds no valid state. It gets its blocks anew when it comes back.
class ServerLinks {
 public:
  // Covers servers 0 to `most` - 1. `answer` receives the results of calls, on the threads of the
  // links and the watches. `security` has the credentials of the links.
  ServerLinks(uint64_t job, uint32_t most, std::function<Time()> now,
              const TransportSecurity& security, std::function<void(const CommandAnswer&)> answer);

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
  const TransportSecurity& security_;
  const std::function<void(const CommandAnswer&)> answer_;
  // The link of each server, by its index; null before the server has registered and while it is
  // lost.
  std::vector<std::unique_ptr<ControlLink>> links_;
  // The watch of each server, by its index. Server 0 has no watch, because it is this process.
  std::vector<std::unique_ptr<ServerWatch>> watches_;
  // Watches that were stopped. Each is kept until it is over.
  std::vector<std::unique_ptr<ServerWatch>> stopped_watches_;
};

}  // namespace leeway
