// The wire to a server, byte by byte, whatever goes over it: it can be cut, as by the end of the
// process at its end, or passes nothing on for a while, as a network in trouble does. (way.h is for
// what is said in single calls.)
#pragma once

#include <functional>
#include <list>
#include <string>
#include <thread>

#include "common/mutex.h"

namespace leeway::testing {

// Thread-safe. Has a port of loopback's from beginning to end.
class Wire {
 public:
  Wire();
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  const std::string& address() const { return address_; }
  // Connections are accepted and lead there from now on, host:port; before that, and after Cut,
  // they are refused.
  void LeadTo(const std::string& address);
  // When it returns, both ends of each connection have been reset.
  void Cut();
  // Passes on no byte and no connection until Release; the system accepts connections all the same.
  void Hold();
  void Release();

 private:
  struct Link;

  // Has the thread do it, and waits.
  void Do(std::function<void()> action) EXCLUDES(mutex_);
  void Run();
  void Listen();
  void Refuse();
  void Accept();
  // Waits until there is something to do; false: at the end.
  bool Step();

  std::string address_;
  int port_ = 0;
  // Keeps the port.
  int holder_ = -1;
  int wake_ = -1;

  // Of the thread alone.
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
