// Sockets between the processes of one host, which gRPC owns and has no settings for. So they are
// found among the process's open files.
#pragma once

#include <string>

namespace leeway {

// An address that nobody else has, unix-abstract:leeway-...: gone with the process, however it
// ends.
std::string NewLocalAddress();

// To be called when a stream with `peer` has begun, by either end; `peer` as a gRPC context says
// it. Does nothing where the peer is on another host.
//
// Unix sockets over an address of NewLocalAddress get room for 1 MiB on their way out, or what the
// system allows. They have 208 KiB otherwise, and a sender is woken only when three quarters of
// that have been read: what is larger stands still between.
//
// TCP: StopPacing().
//
// Looks at the first 1024 files at most: who has more connections sends little on each. `sole`: no
// other connection has this peer, as at a server, whose peers are workers' ports; it is looked for
// no further, so that a thousand workers may come.
void TuneLocalSockets(const std::string& peer, bool sole = false);

// Where both ends of a TCP connection have the same address there is no link to share, and what
// spreads packets over time (BBR, where the system has it by default) costs half of the rate: such
// a socket gets Reno, which every system has and permits. Other sockets stay as they are.
void StopPacing(int socket);

}  // namespace leeway
