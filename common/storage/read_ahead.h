// Fetches copies of an object store's files before they are needed.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "common/mutex.h"
#include "common/storage/local_copies.h"

namespace leeway {

// Thread-safe. Ignores errors of a fetch, because a reader of the same file will get the error
// again.
class ReadAhead {
 public:
  // `threads` is the number of files that are fetched at the same time. The threads start with the
  // first file. `copies` must outlive this object.
  ReadAhead(LocalCopies* copies, uint32_t threads) : copies_(copies), threads_max_(threads) {}
  // Drops the files that wait, and waits until the files that are being fetched are complete.
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;

  // Queues the file after those already queued. Does nothing if the file is already queued or being
  // fetched.
  void WillNeed(const std::string& location) EXCLUDES(mutex_);

 private:
  void Run() EXCLUDES(mutex_);
  // Waits until there is a file to fetch, and returns it. Returns nothing when the object is being
  // destroyed.
  std::optional<std::string> Next() EXCLUDES(mutex_);

  LocalCopies* const copies_;
  const uint32_t threads_max_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::string> waiting_ GUARDED_BY(mutex_);
  std::set<std::string> fetching_ GUARDED_BY(mutex_);
  bool ending_ GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ GUARDED_BY(mutex_);
};

}  // namespace leeway
