// Unix sockets between the processes of one host.
#pragma once

#include <string>

namespace leeway {

// An address that nobody else has, unix-abstract:leeway-...: gone with the process, however it
// ends.
std::string NewLocalAddress();

// Gives every connection of this process over such an address, whichever end it has, room for 1 MiB
// on its way out, or what the system allows. A unix socket has 208 KiB otherwise, and its sender is
// woken only when three quarters of that have been read: what is larger stands still between. gRPC,
// whose sockets they are, has no setting for it. To be called when a stream has begun; costs a
// look at each open file.
void WidenLocalSockets();

}  // namespace leeway
