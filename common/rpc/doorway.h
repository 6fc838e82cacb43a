// Who comes in at a port, and who waits outside.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <string>

#include "common/clock.h"
#include "common/rpc/connection_table.h"

namespace leeway {

// A connection whose host has opened more than it may (ConnectionTable::MayCome) waits for its
// turn, so that a peer of a crowd's host is served late and not sent away. Few may wait: the one
// that has waited for longest makes room. Of one thread.
class Doorway {
 public:
  static constexpr size_t kWaitingMost = 64;
  static constexpr Duration kLookEvery = std::chrono::milliseconds(10);
  struct Sockets {
    // Both own the socket from then on.
    std::function<void(int socket)> hand_over;
    std::function<void(int socket)> refuse;
    // The other end has hung up.
    std::function<bool(int socket)> is_gone;
  };

  // `table` outlives this object.
  Doorway(ConnectionTable* table, Sockets sockets);
  // Refuses whoever waits.
  ~Doorway();
  Doorway(const Doorway&) = delete;

  // A connection of `peer` was accepted.
  void Come(int socket, const std::string& peer, Time now);
  // Lets in those whose turn has come, once every kLookEvery. True: some wait.
  bool Look(Time now);

 private:
  struct Waiting {
    int socket;
    std::string peer;
  };
  void LetIn(const Waiting& connection, Time now);

  ConnectionTable* const table_;
  const Sockets sockets_;
  // Whoever came first is first.
  std::deque<Waiting> waiting_;
  Time next_look_{};
};

}  // namespace leeway
