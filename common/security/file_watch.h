// Looks at files of this process again and again, on a thread of its own.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "common/clock.h"
#include "common/mutex.h"

namespace leeway {

// Thread-safe.
class FileWatch {
 public:
  static constexpr Duration kLookEvery = std::chrono::seconds(1);

  // `look` takes what it finds, or says why it does not. It is called by one thread at a time.
  FileWatch(std::function<absl::Status()> look, Duration look_every);
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;

  // Looks once. The log has each reason why files are not taken once: at the second look, for files
  // are written one after the other.
  void Look() EXCLUDES(looking_, mutex_);

 private:
  // Also by itself when the process ends: no thread may use OpenSSL while that is being torn down.
  void Stop() EXCLUDES(mutex_);
  void StopAtExit();
  void Run(Duration look_every) EXCLUDES(mutex_);

  const std::function<absl::Status()> look_;
  Mutex looking_;
  // Why the files were not taken at the last look; empty: they were.
  std::string refused_ GUARDED_BY(looking_);
  bool told_ GUARDED_BY(looking_) = false;

  Mutex mutex_;
  CondVar changed_;
  bool over_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace leeway
