// The streams that a server serves: how many of them a worker may have, and which of them stand
// still.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "common/clock.h"
#include "common/mutex.h"

namespace leeway {

// Thread-safe.
class StreamList {
 public:
  class Stream {
   public:
    virtual ~Stream() = default;
    // If its worker has not read for long, takes back what waits beyond limits.unread_bytes.
    virtual void TakeBackUnread(Time now) = 0;
    virtual void End() = 0;
  };

  void Add(const std::shared_ptr<Stream>& stream);
  // The stream turns out to be `rank`'s. A worker has at most transport.channels of them for each
  // shard that the server may come to serve: one more
  // ends its oldest, which after a broken connection is dead and, where a worker opens ever more,
  // keeps it from being served more often than the others, whose streams take turns with its own.
  void Belongs(uint32_t rank, const std::shared_ptr<Stream>& stream);
  // To be called a few times a second.
  void Tick(Time now);

  // Nothing is ended before it is known.
  void SetLimit(uint32_t streams_per_rank);

 private:
  using Streams = std::vector<std::weak_ptr<Stream>>;

  Mutex mutex_;
  uint32_t limit_ GUARDED_BY(mutex_) = 0;
  Streams all_ GUARDED_BY(mutex_);
  // Oldest first.
  std::map<uint32_t, Streams> of_ranks_ GUARDED_BY(mutex_);
};

}  // namespace leeway
