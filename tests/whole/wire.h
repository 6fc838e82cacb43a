// The wire to a server, byte by byte, for any protocol. It can be cut, as when the process at its
// end dies, or it passes nothing on for a while, like a network in trouble. (way.h works on single
// calls.)
#pragma once

#include <functional>
#include <list>
#include <string>
#include <thread>

#include "common/mutex.h"

namespace leeway::testing {

// Thread-safe. Has one port of loopback from beginning to end.
class Wire {
 public:
  Wire();
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  const std::string& address() const { return address_; }
  // Accepts connections from now on, and leads them to host:port. Before that, and after Cut,
  // connections are refused.
  void LeadTo(const std::string& address);
  // When it returns, both ends of each connection have been reset.
  void Cut();
  // Passes on no byte and no connection until Release. The system still accepts connections.
  void Hold();
  void Release();

 private:
  struct Link;

  // Has the thread do it, and waits for it.
  void Do(std::function<void()> action) EXCLUDES(mutex_);
  void Run();
  void Listen();
  void Refuse();
  void Accept();
  // Waits until there is something to do. Returns false at the end.
  bool Step();

  std::string address_;
  int port_ = 0;
  // Keeps the port reserved.
  int holder_ = -1;
  int wake_ = -1;

  // Used by the thread alone.
  std::string target_;
  int listener_ = -1;
  bool held_ = false;
  bool ends_ = false;
  std::list<Link> links_;

  Mutex mutex_;
  CondVar done_;
  std::function<void()> action_ GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace leeway::testing
