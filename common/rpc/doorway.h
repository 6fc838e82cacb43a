// Lets connections in at a port, or makes them wait outside.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <string>

#include "common/clock.h"
#include "common/rpc/connection_table.h"

namespace leeway {

// A connection whose host has opened too many (ConnectionTable::MayCome) waits for its turn. So a
// legitimate peer on the same host as an attacker is served late instead of being refused. Few
// connections may wait: a further one displaces the one that has waited longest. Used by one
// thread.
class Doorway {
 public:
  static constexpr size_t kWaitingMost = 64;
  static constexpr Duration kLookEvery = std::chrono::milliseconds(10);
  struct Sockets {
    // Each of the two functions takes ownership of the socket.
    std::function<void(int socket)> hand_over;
    std::function<void(int socket)> refuse;
    // Whether the peer has hung up.
    std::function<bool(int socket)> is_gone;
  };

  // `table` outlives this object.
  Doorway(ConnectionTable* table, Sockets sockets);
  // Refuses all waiting connections.
  ~Doorway();
  Doorway(const Doorway&) = delete;

  // A connection of `peer` was accepted.
  void Come(int socket, const std::string& peer, Time now);
  // Lets in the connections whose turn has come, once every kLookEvery. Returns true if some still
  // wait.
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
