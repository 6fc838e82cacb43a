#include "common/host_name.h"

#include <netdb.h>
#include <sys/socket.h>

#include "absl/strings/str_cat.h"
#include "common/address.h"
#include "common/status.h"

namespace leeway {

absl::Status CheckHostIsKnown(const std::string& address) {
  ASSIGN_OR_RETURN(const HostPort parts, SplitAddress(address));
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(parts.host.c_str(), nullptr, &hints, &found);
  if (error == 0) freeaddrinfo(found);
  if (error == 0 || error == EAI_AGAIN || error == EAI_SYSTEM || error == EAI_MEMORY) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the host ", parts.host, " is not known here: ", gai_strerror(error)));
}

}  // namespace leeway
