// The coordinator of a simulated world: its membership alone, or the whole core; and its ordered
// links to the servers.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <utility>

#include "tests/sim/context.h"

namespace leeway::sim {

// What server/coordinator/control_link.h does: commands to one server in order, one at a time,
// until each is answered.
class SimLink {
 public:
  void Add(Context& context, NodeId server, Message command);
  // The server has carried out the front command; false: this is an answer from before.
  bool OnDone(Context& context, NodeId server, uint32_t sequence);
  void OnTick(Context& context, NodeId server);
  // To another process from now on; what waited for the one before is forgotten.
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
  // The process is killed, and started again at once.
  virtual void Restart(Context& context) {}
  // The server's process asks whether it may leave: others hold what it held.
  virtual bool Drain(Context& context, uint32_t server, uint32_t boot) { return false; }
  // The job is to have the server, and runs.
  virtual bool Wants(Context& context, uint32_t server) const { return true; }
  // Whatever the job's end needs of it has happened.
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
  // A rank's life has its incarnation: nobody else may ever have had it.
  void CheckLife(Context& context, uint32_t rank, uint64_t incarnation, uint32_t life);

 private:
  std::array<SimLink, kServersMax> links_;
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> lives_;
};

// Membership of server/coordinator/core/membership.h, with as much around it as the data plane
// sees.
std::unique_ptr<SimControl> MakeLightControl(Context& context);
// server/coordinator/core/coordinator_core.h, whole.
std::unique_ptr<SimControl> MakeWholeControl(Context& context);

}  // namespace leeway::sim
