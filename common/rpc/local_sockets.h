// Tunes sockets between processes of one host. gRPC owns these sockets and has no settings for
// them, so they are searched for among the process's open files.
#pragma once

#include <string>

namespace leeway {

// Returns a new address that no other process has: unix-abstract:leeway- and a random part. It
// disappears when the process ends, however it ends.
std::string NewLocalAddress();

// Tunes the sockets of a stream with `peer`, named as in a gRPC context. Either end calls it when
// the stream has begun. It does nothing if the peer is on another host.
//
// A unix socket whose address is from NewLocalAddress gets a send buffer of 1 MiB, or what the
// system allows. The default is 208 KiB, and the system wakes a sender only when three quarters of
// that have been read, so a larger message stalls.
//
// A TCP socket: see StopPacing.
//
// The search covers the first 1024 files, because a process with more connections sends little on
// each. `sole`: no other connection has this peer, as at a server, whose peers are ports of
// workers. The search then ends at the first match, which keeps it short for a thousand workers.
void TuneLocalSockets(const std::string& peer, bool sole = false);

// Gives a unix socket the send buffer of TuneLocalSockets.
void WidenLocalSocket(int socket);

// If both ends of a TCP connection have the same address, they do not share a link. Spreading
// packets over time (BBR, the default of some systems) then halves the rate. Such a socket gets
// Reno, which each system has and permits. Other sockets stay as they are.
void StopPacing(int socket);

}  // namespace leeway
