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

  // `look` reads the files and uses their content from then on, or returns the reason why it
  // refuses them. Only one thread at a time calls it.
  FileWatch(std::function<absl::Status()> look, Duration look_every);
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;

  // Checks the files once. Logs each reason for a refusal once, and only if two checks in a row
  // find it. The first check may come while the files are being written one after the other.
  void Look() EXCLUDES(looking_, mutex_);

 private:
  // Stop ends the thread. StopAtExit arranges that the end of the process calls Stop, because no
  // thread may use OpenSSL while OpenSSL cleans up.
  void Stop() EXCLUDES(mutex_);
  void StopAtExit();
  void Run(Duration look_every) EXCLUDES(mutex_);

  const std::function<absl::Status()> look_;
  Mutex looking_;
  // The reason why the last check refused the files. Empty if the files were accepted.
  std::string refused_ GUARDED_BY(looking_);
  bool told_ GUARDED_BY(looking_) = false;

  Mutex mutex_;
  CondVar changed_;
  bool over_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace leeway
