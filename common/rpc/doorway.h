// Decides whether a new connection at a port is passed on at once or has to wait.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <string>

#include "common/clock.h"
#include "common/rpc/connection_table.h"

namespace leeway {

// A connection whose host has opened too many connections (ConnectionTable::MayCome) waits. So a
// legitimate peer on the same host as an attacker is delayed and not refused. Only a few
// connections may wait, and a further connection displaces the one that has waited longest. Used by
// one thread.
class Doorway {
 public:
  static constexpr size_t kWaitingMost = 64;
  static constexpr Duration kLookEvery = std::chrono::milliseconds(10);
  struct Sockets {
    // Passes the connection on, or closes it. Both functions take ownership of the socket.
    std::function<void(int socket)> hand_over;
    std::function<void(int socket)> refuse;
    // Returns whether the peer has closed the connection.
    std::function<bool(int socket)> is_gone;
  };

  // `table` outlives this object.
  Doorway(ConnectionTable* table, Sockets sockets);
  // Refuses all waiting connections.
  ~Doorway();
  Doorway(const Doorway&) = delete;

  // Call this function when a connection of `peer` was accepted.
  void Come(int socket, const std::string& peer, Time now);
  // Passes on the waiting connections that may now be added, at most once in kLookEvery. Returns
  // true if a connection still waits.
  bool Look(Time now);

 private:
  struct Waiting {
    int socket;
    std::string peer;
  };
  void LetIn(const Waiting& connection, Time now);

  ConnectionTable* const table_;
  const Sockets sockets_;
  // The connections in the order of their arrival.
  std::deque<Waiting> waiting_;
  Time next_look_{};
};

}  // namespace leeway
