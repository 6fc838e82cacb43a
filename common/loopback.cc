#include "common/loopback.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "common/descriptor.h"

namespace leeway {

std::string LoopbackHost() {
  const Descriptor probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool there =
      *probe >= 0 && bind(*probe, reinterpret_cast<const sockaddr*>(&four), sizeof(four)) == 0;
  return there ? "127.0.0.1" : "[::1]";
}

}  // namespace leeway
