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

// Thread-safe. A reader meets the error of a failed fetch again, so errors are ignored here.
class ReadAhead {
 public:
  // `threads`: the number of files that are fetched at the same time. The threads start with the
  // first file. `copies` outlives this object.
  ReadAhead(LocalCopies* copies, uint32_t threads) : copies_(copies), threads_max_(threads) {}
  // Drops files that are not begun, and waits for those that are being fetched.
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;

  // Queues the file behind the files named before. A file that already waits keeps its place; one
  // that is being fetched stays as it is.
  void WillNeed(const std::string& location) EXCLUDES(mutex_);

 private:
  void Run() EXCLUDES(mutex_);
  // Waits for a file to fetch. Returns nothing when the object is being destroyed.
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
