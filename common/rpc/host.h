// Identifies the host of a process with respect to shared memory and unix sockets.
#pragma once

#include <string>

namespace leeway {

// The host name; "unknown" if the system does not say.
std::string HostName();

// Equal exactly for processes that can reach each other's unix-abstract sockets and memory: same
// boot of one kernel, same network and pid namespaces, same effective user. 16 hexadecimal digits.
// Empty if the system does not say; an empty identity matches no other. A cloned virtual machine
// may have the identity of its original, so a caller must still try the connection.
std::string HostIdentity();

// Equal exactly for processes that share a loopback interface: same boot of one kernel, same
// network namespace. For them 127.0.0.1 is the same host.
std::string NetworkIdentity();

}  // namespace leeway
