// Accepts the connections that arrive at listening sockets.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "common/descriptor.h"

namespace leeway {

// Works on a thread of its own. If the process can open no more files, a new connection stays in
// the socket's queue, and the acceptor tries again later.
class Acceptor {
 public:
  // Takes ownership of the accepted socket, which is non-blocking.
  using Accepted = std::function<void(int socket)>;
  // The acceptor calls this function before each wait for connections. The function returns true if
  // the acceptor must call it again soon, even without a new connection.
  using Look = std::function<bool()>;

  // Starts to accept connections. `listening` are non-blocking sockets.
  static absl::StatusOr<std::unique_ptr<Acceptor>> Start(
      std::vector<Descriptor> listening, Accepted accepted, Look look = [] { return false; });
  // Stops. `accepted` is not called after the destructor has returned.
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;

 private:
  Acceptor(std::vector<Descriptor> listening, Descriptor stop, Accepted accepted, Look look);
  void Run();
  // Accepts one connection. Returns false if the process can open no more files.
  bool Take(int listening);

  const std::vector<Descriptor> listening_;
  // An eventfd that ends the thread.
  const Descriptor stop_;
  const Accepted accepted_;
  const Look look_;
  std::thread thread_;
};

}  // namespace leeway
