// Checks files of this process regularly, on a thread of its own.
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

  // `look` takes over the content of the files, or returns why it refuses them. One thread at a
  // time calls it.
  FileWatch(std::function<absl::Status()> look, Duration look_every);
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;

  // Checks the files once. The log gets each reason for a refusal once, and only at the second
  // check, because files are written one after the other.
  void Look() EXCLUDES(looking_, mutex_);

 private:
  // Also runs when the process ends: no thread may use OpenSSL while OpenSSL is being torn down.
  void Stop() EXCLUDES(mutex_);
  void StopAtExit();
  void Run(Duration look_every) EXCLUDES(mutex_);

  const std::function<absl::Status()> look_;
  Mutex looking_;
  // Why the files were refused at the last check; empty if they were taken.
  std::string refused_ GUARDED_BY(looking_);
  bool told_ GUARDED_BY(looking_) = false;

  Mutex mutex_;
  CondVar changed_;
  bool over_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace leeway
