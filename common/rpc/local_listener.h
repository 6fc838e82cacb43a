// The listening end of an abstract unix socket, for processes of this host. Such a socket has no
// file, so a file mode cannot limit who connects. Instead the system reports the user of each peer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/rpc/acceptor.h"

namespace leeway {

// Accepts connections of one user and of root. It closes connections of other users before it reads
// a byte of them.
class LocalListener {
 public:
  // `address`: unix-abstract:NAME. `user`: the user whose connections are accepted, besides root.
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
  // Declared last, so destroyed first: it uses the other members.
  std::unique_ptr<Acceptor> acceptor_;
};

}  // namespace leeway
