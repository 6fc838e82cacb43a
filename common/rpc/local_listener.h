// The listening end of an abstract unix socket, for processes of this host. Such a socket has no
// file, so no file mode limits who may connect. Instead the system says which user has connected.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"

namespace leeway {

// Accepts connections of this process's user and of root, on a thread of its own, and closes those
// of others before a byte of them is read.
class LocalListener {
 public:
  // From then on owns the socket, which does not block.
  using Accepted = std::function<void(int socket)>;

  // `address`: unix-abstract:NAME. `user`: the user whose connections are accepted, beside root.
  static absl::StatusOr<std::unique_ptr<LocalListener>> Start(const std::string& address,
                                                              uint32_t user, Accepted accepted);
  // No connection is handed over after it.
  ~LocalListener();
  LocalListener(const LocalListener&) = delete;

 private:
  LocalListener(int socket, int stop, uint32_t user, Accepted accepted);
  void Run();
  void Take(int connection);

  const int socket_;
  // An eventfd.
  const int stop_;
  const uint32_t user_;
  const Accepted accepted_;
  bool complained_ = false;
  std::thread thread_;
};

}  // namespace leeway
