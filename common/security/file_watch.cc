#include "common/security/file_watch.h"

#include <chrono>
#include <cstdlib>
#include <set>
#include <utility>

#include <spdlog/spdlog.h>
#include <unistd.h>

namespace leeway {
namespace {

struct Watches {
  Mutex mutex;
  std::set<FileWatch*> all GUARDED_BY(mutex);
};
// Returns all watches of the process. They are never destroyed, because threads may outlive main.
Watches& AllWatches() {
  static auto* watches = new Watches();
  return *watches;
}

}  // namespace

FileWatch::FileWatch(std::function<absl::Status()> look, Duration look_every)
    : look_(std::move(look)) {
  StopAtExit();
  thread_ = std::thread([this, look_every] { Run(look_every); });
}

FileWatch::~FileWatch() {
  {
    MutexLock lock(AllWatches().mutex);
    AllWatches().all.erase(this);
  }
  Stop();
}

// Exit functions run in reverse order of registration. OpenSSL has already registered its clean-up,
// because it is in use before this call. So the watches stop before OpenSSL cleans up.
void FileWatch::StopAtExit() {
  static const pid_t process = getpid();
  static const int registered = std::atexit([] {
    // Do nothing in a forked process, because it does not have the threads.
    if (getpid() != process) return;
    MutexLock lock(AllWatches().mutex);
    for (FileWatch* each : AllWatches().all) each->Stop();
  });
  static_cast<void>(registered);
  MutexLock lock(AllWatches().mutex);
  AllWatches().all.insert(this);
}

void FileWatch::Stop() {
  {
    MutexLock lock(mutex_);
    over_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void FileWatch::Look() {
  MutexLock lock(looking_);
  const absl::Status taken = look_();
  if (taken.ok()) {
    refused_.clear();
    told_ = false;
    return;
  }
  const std::string reason(taken.message());
  if (reason != std::exchange(refused_, reason)) {
    told_ = false;
  } else if (!std::exchange(told_, true)) {
    spdlog::warn("{}; this process continues with what it read before", reason);
  }
}

void FileWatch::Run(Duration look_every) {
  while (true) {
    {
      const Time until = std::chrono::steady_clock::now() + look_every;
      MutexLock lock(mutex_);
      while (!over_ && changed_.WaitUntil(mutex_, until)) {
      }
      if (over_) return;
    }
    Look();
  }
}

}  // namespace leeway
