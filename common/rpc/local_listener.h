// The listening end of an abstract unix socket, for processes of this host. Such a socket has no
// file, so no file mode limits who may connect. Instead the system says which user has connected.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/rpc/acceptor.h"

namespace leeway {

// Accepts connections of this process's user and of root, and closes those of others before a byte
// of them is read.
class LocalListener {
 public:
  // `address`: unix-abstract:NAME. `user`: the user whose connections are accepted, beside root.
  static absl::StatusOr<std::unique_ptr<LocalListener>> Start(const std::string& address,
                                                              uint32_t user,
                                                              Acceptor::Accepted accepted);
  LocalListener(const LocalListener&) = delete;

 private:
  LocalListener(uint32_t user, Acceptor::Accepted accepted)
      : user_(user), accepted_(std::move(accepted)) {}
  void Take(int connection);

  const uint32_t user_;
  const Acceptor::Accepted accepted_;
  bool complained_ = false;
  // First to go: it uses the others.
  std::unique_ptr<Acceptor> acceptor_;
};

}  // namespace leeway
