// Watches whether a server's process is alive. The watch holds an idle connection, which the
// server's operating system closes when the process ends, however it ends.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "common/mutex.h"

struct addrinfo;

namespace leeway {

// A lost connection is only a hint, because networks drop connections, too. So the watch then tries
// a second connection at once. If the second connection is refused, no process listens there, so
// the server's process is gone. If the second connection is accepted, or not answered in time, the
// process may be alive, and the watch continues. Either the process is suspended, and the operating
// system accepts connections for it. Or its host cannot be reached, and so cannot refuse. In both
// cases the server's lease decides whether the server is lost.
//
// A router may forget an idle connection. So the operating system probes the other end once a
// second (TCP keepalive), and closes the connection if the other end does not answer.
//
// Thread-safe. Waits on a thread of its own.
class ServerWatch {
 public:
  // `address` is the server's host:port. `on_gone` is called at most once, on the watch's thread.
  ServerWatch(std::string address, std::function<void()> on_gone);
  // May block for as long as a lookup of a host name takes.
  ~ServerWatch();
  ServerWatch(const ServerWatch&) = delete;

  // Ends the watch. Once this has returned, `on_gone` is not called any more. Must not be called
  // from `on_gone`.
  void Stop() EXCLUDES(mutex_);
  // True if the watch was stopped or has finished, so that the destructor does not wait.
  bool over() const EXCLUDES(mutex_);

 private:
  enum class Seen { kRefused, kUnknown, kStopped };

  void Run() EXCLUDES(mutex_);
  // Runs until the server's process has ended or the watch is stopped.
  Seen Watch();
  // Connects to one of the addresses, and waits until the connection ends. Sets `held` if the
  // connection was established. Returns kRefused only if all addresses refused, and kUnknown if
  // there are no addresses.
  Seen HoldAny(const addrinfo* addresses, bool& held);
  Seen Hold(int socket, bool& held);
  // Waits for `events` on the file descriptor `file`, or until the watch is stopped. Returns false
  // if neither happened within `ms` milliseconds. A negative `ms` means no limit.
  bool Wait(int file, short events, int ms, bool& stopped) const;
  void Report() EXCLUDES(mutex_);

  const std::string address_;
  // An eventfd, which becomes readable when the watch is stopped.
  const int wake_;

  mutable Mutex mutex_;
  std::function<void()> on_gone_ GUARDED_BY(mutex_);
  bool over_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace leeway
