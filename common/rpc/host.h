// Identifies the host of a process with respect to shared memory and unix sockets.
#pragma once

#include <string>

namespace leeway {

// Returns the host name, or "unknown" if the system does not provide it.
std::string HostName();

// Returns 16 hexadecimal digits. Two processes have the same identity exactly if they can reach
// each other's unix-abstract sockets and memory: the boot of the kernel, the network and pid
// namespaces and the effective user are the same. The identity is empty if the system does not
// provide these facts. An empty identity never matches. A cloned virtual machine may have the
// identity of its original, so a caller must still try the connection.
std::string HostIdentity();

// Returns an identity that two processes share exactly if they have the same loopback interface, so
// that 127.0.0.1 is the same host for both: the boot of the kernel and the network namespace are
// the same.
std::string NetworkIdentity();

}  // namespace leeway
