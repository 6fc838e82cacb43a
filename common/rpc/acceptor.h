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

  // `listening`: sockets that do not block.
  static absl::StatusOr<std::unique_ptr<Acceptor>> Start(std::vector<Descriptor> listening,
                                                         Accepted accepted);
  // No connection is handed over after it.
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;

 private:
  Acceptor(std::vector<Descriptor> listening, Descriptor stop, Accepted accepted);
  void Run();
  // False: no file is left.
  bool Take(int listening);

  const std::vector<Descriptor> listening_;
  // An eventfd.
  const Descriptor stop_;
  const Accepted accepted_;
  std::thread thread_;
};

}  // namespace leeway
