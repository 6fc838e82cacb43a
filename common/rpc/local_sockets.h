// Sockets between the processes of one host, which gRPC owns and has no settings for. So they are
// found among the process's open files.
#pragma once

#include <string>

namespace leeway {

// A new address that nobody else has: unix-abstract:leeway- and a random part. It disappears with
// the process, however it ends.
std::string NewLocalAddress();

// To be called when a stream with `peer` has begun, by either end; `peer` as a gRPC context says
// it. Does nothing where the peer is on another host.
//
// Unix sockets over an address of NewLocalAddress get a send buffer of 1 MiB, or what the system
// allows. Otherwise they have 208 KiB, and a sender is woken only when three quarters of that have
// been read, so a larger message stalls in between.
//
// TCP: StopPacing().
//
// Looks at the first 1024 files at most, because a process with more connections sends little on
// each. `sole`: no other connection has this peer, as at a server, whose peers are workers' ports.
// Then the search ends with the first one, so that a thousand workers may come.
void TuneLocalSockets(const std::string& peer, bool sole = false);

// Gives a unix socket that room.
void WidenLocalSocket(int socket);

// If both ends of a TCP connection have the same address, there is no link to share. Spreading
// packets over time (BBR, the default of some systems) then costs half of the rate. Such a socket
// gets Reno, which every system has and permits. Other sockets stay as they are.
void StopPacing(int socket);

}  // namespace leeway
