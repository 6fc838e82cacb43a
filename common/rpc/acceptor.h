// Accepts the connections that arrive at listening sockets.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "common/descriptor.h"

namespace leeway {

// Works on a thread of its own. If the process has no file left for a connection, the connection
// stays in the socket's queue and the acceptor tries again later.
class Acceptor {
 public:
  // Takes ownership of the accepted socket, which is non-blocking.
  using Accepted = std::function<void(int socket)>;
  // Called before each wait for connections. Returns true if it is to be called again soon, even
  // without a new connection.
  using Look = std::function<bool()>;

  // `listening`: non-blocking sockets.
  static absl::StatusOr<std::unique_ptr<Acceptor>> Start(
      std::vector<Descriptor> listening, Accepted accepted, Look look = [] { return false; });
  // After the destructor has returned, no connection is handed over.
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;

 private:
  Acceptor(std::vector<Descriptor> listening, Descriptor stop, Accepted accepted, Look look);
  void Run();
  // Returns false if the process has no file left.
  bool Take(int listening);

  const std::vector<Descriptor> listening_;
  // An eventfd that ends the thread.
  const Descriptor stop_;
  const Accepted accepted_;
  const Look look_;
  std::thread thread_;
};

}  // namespace leeway
