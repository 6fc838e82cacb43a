// Tunes sockets between processes of one host. gRPC owns these sockets and does not let its user
// tune them, so this code searches for them among the process's open files.
#pragma once

#include <string>

namespace leeway {

// Returns a new address that no other process has: unix-abstract:leeway- and a random part. A
// socket on this address leaves nothing behind when the process ends, even by SIGKILL.
std::string NewLocalAddress();

// Tunes the sockets of a stream with `peer`, which is named as in a gRPC context. Each end calls
// this function when the stream has begun. Does nothing if the peer is on another host.
//
// A unix socket whose address is from NewLocalAddress gets a send buffer of 1 MiB, or the largest
// that the system allows. The default is 208 KiB. The kernel wakes a sender only when three
// quarters of the buffer have been read, so a message larger than the buffer stalls.
//
// StopPacing describes how a TCP socket is tuned.
//
// The search covers the first 1024 files. A process with more connections sends little on each, so
// tuning would not help. `sole` is true if each connection has a different peer, as in a server,
// which sees each worker's port as a peer. The search then ends at the first match, which keeps it
// short for a thousand workers.
void TuneLocalSockets(const std::string& peer, bool sole = false);

// Sets the send buffer of a unix socket as TuneLocalSockets does.
void WidenLocalSocket(int socket);

// Sets the congestion control of a TCP socket to Reno if both ends of the connection have the same
// address. Such a connection uses no link. BBR, the default of some systems, spreads the packets
// over time (pacing), which halves the rate. Every system has Reno and permits it. Other sockets
// stay as they are.
void StopPacing(int socket);

}  // namespace leeway
