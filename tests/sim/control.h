// The coordinator of a simulated world, either its membership alone or the whole core, and its
// ordered links to the servers.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <utility>

#include "tests/sim/context.h"

namespace leeway::sim {

// Does what server/coordinator/control_link.h does: it sends commands to one server in order, each
// after the answer to the previous one.
class SimLink {
 public:
  void Add(Context& context, NodeId server, Message command);
  // The server has carried out the front command. False: this is the answer to an earlier command.
  bool OnDone(Context& context, NodeId server, uint32_t sequence);
  void OnTick(Context& context, NodeId server);
  // Sends to another process from now on, and forgets what waits for the previous one.
  void Connect(uint32_t boot) {
    waiting_.clear();
    boot_ = boot;
  }

 private:
  void SendFront(Context& context, NodeId server);
  std::deque<Message> waiting_;
  uint32_t last_ = 0;
  uint32_t boot_ = 0;
  Micros sent_ = 0;
};

class SimControl {
 public:
  virtual ~SimControl() = default;
  virtual void OnMessage(Context& context, const Message& message) = 0;
  virtual void OnTick(Context& context) = 0;
  // The coordinator's process is killed, and started again at once.
  virtual void Restart(Context& context) {}
  // The server's process asks whether it may leave. True: others hold what it held.
  virtual bool Drain(Context& context, uint32_t server, uint32_t boot) { return false; }
  // Whether the job is running and is to have this server.
  virtual bool Wants(Context& context, uint32_t server) const { return true; }
  // Whether everything has happened that the job's end needs from the coordinator.
  virtual bool over() const = 0;
  // Why the job failed; empty if it did not.
  virtual std::string Failure(Context& context) const { return ""; }
  virtual std::string Where(Context& context) const = 0;

 protected:
  void Tell(Context& context, uint32_t server, const Message& command);
  void TellLive(Context& context, uint32_t rank, bool live);
  void Connect(uint32_t server, uint32_t boot) { links_[server].Connect(boot); }
  bool Done(Context& context, const Message& message);
  void TickLinks(Context& context);
  void ScheduleTick(Context& context);
  // Checks that no other life has ever had the incarnation that this life of the rank has.
  void CheckLife(Context& context, uint32_t rank, uint64_t incarnation, uint32_t life);

 private:
  std::array<SimLink, kServersMax> links_;
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> lives_;
};

// Makes a coordinator that is Membership (server/coordinator/core/membership.h) with what the data
// plane sees of the rest.
std::unique_ptr<SimControl> MakeLightControl(Context& context);
// Makes a coordinator that is the whole CoordinatorCore
// (server/coordinator/core/coordinator_core.h).
std::unique_ptr<SimControl> MakeWholeControl(Context& context);

}  // namespace leeway::sim
