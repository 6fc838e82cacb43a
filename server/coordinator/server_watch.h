// Whether a server's process is alive. The watch holds a silent connection, which the server's
// operating system cuts when the process ends, however it ends.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "common/mutex.h"

struct addrinfo;

namespace leeway {

// A cut connection is only a hint, because networks cut connections, too. So a second connection
// checks it at once. If that is refused, nobody listens there, and the process is gone. If it is
// accepted, or not answered in time, the process may live, and the watch continues. The operating
// system accepts connections for a process that stands still, and a host that cannot be reached
// does not refuse them. In both cases the lease decides.
//
// The network may forget a silent connection. So the system asks once a second whether the other
// end still has it, and is told to cut it if not.
//
// Thread-safe. Waits on a thread of its own.
class ServerWatch {
 public:
  // `address` is the server's host:port. `on_gone` is called at most once, on the watch's thread.
  ServerWatch(std::string address, std::function<void()> on_gone);
  // May take as long as the lookup of a host name.
  ~ServerWatch();
  ServerWatch(const ServerWatch&) = delete;

  // After it returns, `on_gone` is not called any more. Must not be called from `on_gone`.
  void Stop() EXCLUDES(mutex_);
  // True if the watch was stopped or has finished, so that the destructor does not wait.
  bool over() const EXCLUDES(mutex_);

 private:
  enum class Seen { kRefused, kUnknown, kStopped };

  void Run() EXCLUDES(mutex_);
  // Runs until the server's process has ended or the watch is stopped.
  Seen Watch();
  // Connects to one of the addresses, and waits until the connection ends. Sets `held` if the
  // connection was established. Returns kRefused only if all addresses refused, and kUnknown
  // without addresses.
  Seen HoldAny(const addrinfo* addresses, bool& held);
  Seen Hold(int socket, bool& held);
  // Waits for `events` of `file`, or until the watch is stopped. Returns false if neither came
  // within `ms`. A negative `ms` means no limit.
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
