// The streams that a server serves: whose they are, how many each may have, and which of them stand
// still.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "common/clock.h"
#include "common/mutex.h"

namespace leeway {

// Thread-safe. Streams are ended without the list's lock.
class StreamList {
 public:
  class Stream {
   public:
    virtual ~Stream() = default;
    // If its peer has not read for long, takes back what waits beyond limits.unread_bytes.
    virtual void TakeBackUnread(Time now) = 0;
    // From any thread; harmless when repeated.
    virtual void End() = 0;
    // When a message of it came last, or one to it left; at first, when it began.
    virtual Time last_heard() const = 0;
  };
  using Ref = std::shared_ptr<Stream>;

  // A stream begins: nobody's, until it says whose it is. There may be so many of those at a time,
  // and they may be silent for so long (stream_list.cc).
  void Add(const Ref& stream);
  // It has ended.
  void Remove(const Stream* stream);
  // It turns out to be that of a life of worker `rank`, which has at most transport.channels of
  // them for each shard. One more ends the one that was heard of longest ago: after a broken
  // connection that is a dead one, and a worker that opens ever more is not served more often than
  // the others, whose streams take turns with its own. A life that was replaced owns no streams:
  // nobody's.
  void Belongs(uint32_t rank, uint64_t incarnation, const Ref& stream);
  // It is another server's, which sends what its replica is to have: one for each shard.
  void BelongsToServer(const Ref& stream);
  // That life of the rank has attached: the streams of those before it end.
  void OnAttach(uint32_t rank, uint64_t incarnation);
  // To be called a few times a second.
  void Tick(Time now);

  // Streams, and bytes that wait for each one's peer to read them.
  struct Limits {
    uint32_t of_rank = 0;
    uint32_t of_servers = 0;
    uint64_t unread_bytes = std::numeric_limits<uint64_t>::max();
  };
  // Before, of those whose owner is known none is ended, and any number of bytes may wait.
  void SetLimits(const Limits& limits);
  uint64_t unread_bytes_max() const { return unread_bytes_max_.load(std::memory_order_relaxed); }

  size_t size() const;

 private:
  struct Entry {
    std::weak_ptr<Stream> stream;
    // Of a worker's.
    uint64_t incarnation = 0;
  };
  using Streams = absl::flat_hash_map<const Stream*, Entry>;
  struct Worker {
    // The newest that has attached.
    uint64_t incarnation = 0;
    Streams streams;
  };

  // Puts it with those of one owner; the one that is too many, or null.
  Ref Move(const Ref& stream, uint64_t incarnation, Streams& to, size_t limit) REQUIRES(mutex_);

  std::atomic<uint64_t> unread_bytes_max_{Limits().unread_bytes};
  mutable Mutex mutex_;
  uint32_t of_rank_max_ GUARDED_BY(mutex_) = 0;
  uint32_t of_servers_max_ GUARDED_BY(mutex_) = 0;
  Streams nobodys_ GUARDED_BY(mutex_);
  Streams of_servers_ GUARDED_BY(mutex_);
  std::map<uint32_t, Worker> of_ranks_ GUARDED_BY(mutex_);
  // In which of those each is.
  absl::flat_hash_map<const Stream*, Streams*> all_ GUARDED_BY(mutex_);
};

}  // namespace leeway
