// Takes the connections that arrive at listening sockets.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "common/descriptor.h"

namespace leeway {

// On a thread of its own. Where no file is left for a connection it waits, and is looked for again.
class Acceptor {
 public:
  // From then on owns the socket, which does not block.
  using Accepted = std::function<void(int socket)>;
  // True: it is to be called again soon, also if nobody comes.
  using Look = std::function<bool()>;

  // `listening`: sockets that do not block.
  static absl::StatusOr<std::unique_ptr<Acceptor>> Start(
      std::vector<Descriptor> listening, Accepted accepted, Look look = [] { return false; });
  // No connection is handed over after it.
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;

 private:
  Acceptor(std::vector<Descriptor> listening, Descriptor stop, Accepted accepted, Look look);
  void Run();
  // False: no file is left.
  bool Take(int listening);

  const std::vector<Descriptor> listening_;
  // An eventfd.
  const Descriptor stop_;
  const Accepted accepted_;
  const Look look_;
  std::thread thread_;
};

}  // namespace leeway
