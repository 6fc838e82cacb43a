// Which host a process runs on, as far as shared memory and unix sockets go.
#pragma once

#include <string>

namespace leeway {

// What people call it; "unknown" when the system does not say.
std::string HostName();

// Equal exactly for processes that reach each other's unix-abstract sockets and memory (same boot
// of one kernel, same network and pid namespace, same effective user); 16 hexadecimal digits. Empty
// when the system does not say, which equals nobody's. A cloned virtual machine may have its
// original's: what is found by this name must still be tried.
std::string HostIdentity();

// The same of processes that have one loopback interface (same boot of one kernel, same network
// namespace): 127.0.0.1 is the same place to them.
std::string NetworkIdentity();

}  // namespace leeway
