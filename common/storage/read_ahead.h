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

// Thread-safe. What fails is left to the reader, who meets the error again.
class ReadAhead {
 public:
  // `threads`: files that are fetched at once; they start with the first file. `copies` outlives
  // this.
  ReadAhead(LocalCopies* copies, uint32_t threads) : copies_(copies), threads_max_(threads) {}
  // Forgets what was not begun, and waits for what is being fetched.
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;

  // Behind those that were named before. One that waits already keeps its place; one that is being
  // fetched is left alone.
  void WillNeed(const std::string& location) EXCLUDES(mutex_);

 private:
  void Run() EXCLUDES(mutex_);
  // Waits for a file to fetch; nothing at the end.
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
