// The streams that a server serves: which worker each belongs to, how many a worker may have, and
// which ones are stalled.
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
    // If the peer has not read for long, takes back the waiting answers beyond limits.unread_bytes.
    virtual void TakeBackUnread(Time now) = 0;
    // May be called from any thread, and repeatedly.
    virtual void End() = 0;
    // When the last message came from the peer or left for it. At first, when the stream began.
    virtual Time last_heard() const = 0;
  };
  using Ref = std::shared_ptr<Stream>;

  // A stream has begun. It has no owner until its first request. The number of streams without an
  // owner is bounded, and so is the time that they may be silent (stream_list.cc).
  void Add(const Ref& stream);
  // The stream has ended.
  void Remove(const Stream* stream);
  // The stream belongs to this life of worker `rank`. A worker has at most transport.channels
  // streams for each shard. One stream more ends the one that has been silent for longest. After a
  // broken connection that one is dead. A worker that keeps opening streams thus gets no larger
  // share than the others, whose streams take turns with its own. A life that was replaced owns no
  // streams, so its streams have no owner.
  void Belongs(uint32_t rank, uint64_t incarnation, const Ref& stream);
  // The stream belongs to another server, which sends the blocks for a replica here. There is one
  // for each shard.
  void BelongsToServer(const Ref& stream);
  // This life of the rank has attached. The streams of its earlier lives end.
  void OnAttach(uint32_t rank, uint64_t incarnation);
  // To be called a few times a second.
  void Tick(Time now);

  // The numbers of streams, and the bytes that may wait for each peer to read them.
  struct Limits {
    uint32_t of_rank = 0;
    uint32_t of_servers = 0;
    uint64_t unread_bytes = std::numeric_limits<uint64_t>::max();
  };
  // Until this call no stream that has an owner is ended, and any number of bytes may wait.
  void SetLimits(const Limits& limits);
  uint64_t unread_bytes_max() const { return unread_bytes_max_.load(std::memory_order_relaxed); }

  size_t size() const;

 private:
  struct Entry {
    std::weak_ptr<Stream> stream;
    // For a worker's stream only.
    uint64_t incarnation = 0;
  };
  using Streams = absl::flat_hash_map<const Stream*, Entry>;
  struct Worker {
    // The newest life that has attached.
    uint64_t incarnation = 0;
    Streams streams;
  };

  // Moves the stream to one owner's streams. Returns the stream that exceeds the limit, or null.
  Ref Move(const Ref& stream, uint64_t incarnation, Streams& to, size_t limit) REQUIRES(mutex_);

  std::atomic<uint64_t> unread_bytes_max_{Limits().unread_bytes};
  mutable Mutex mutex_;
  uint32_t of_rank_max_ GUARDED_BY(mutex_) = 0;
  uint32_t of_servers_max_ GUARDED_BY(mutex_) = 0;
  Streams nobodys_ GUARDED_BY(mutex_);
  Streams of_servers_ GUARDED_BY(mutex_);
  std::map<uint32_t, Worker> of_ranks_ GUARDED_BY(mutex_);
  // The map that holds each stream.
  absl::flat_hash_map<const Stream*, Streams*> all_ GUARDED_BY(mutex_);
};

}  // namespace leeway
