// The listening end of an abstract unix socket, for processes of this host. Such a socket has no
// file, so a file mode cannot limit which processes connect. The listener checks the user of each
// peer instead, which the operating system reports.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/rpc/acceptor.h"

namespace leeway {

// Accepts connections from processes of one user and of root. Closes all other connections before
// it reads a byte.
class LocalListener {
 public:
  // Listens on `address`, unix-abstract:NAME. Accepts connections of `user` and of root.
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
  // Uses the other members, so it is declared last to be destroyed first.
  std::unique_ptr<Acceptor> acceptor_;
};

}  // namespace leeway
