// The streams that a server serves. The list knows the owner of each stream, limits the number of
// streams, and ends stalled streams.
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

// Thread-safe. Stream::End is called without the list's lock.
class StreamList {
 public:
  class Stream {
   public:
    virtual ~Stream() = default;
    // If the peer has not read for long and more than limits.unread_bytes wait for it, takes back
    // answers until the rest is within the limit.
    virtual void TakeBackUnread(Time now) = 0;
    // May be called from any thread, and repeatedly.
    virtual void End() = 0;
    // The time at which the last message came from the peer or left for the peer. At first, the
    // time at which the stream began.
    virtual Time last_heard() const = 0;
  };
  using Ref = std::shared_ptr<Stream>;

  // Adds a stream that has begun. The stream has no owner until its first request. The number of
  // streams without an owner is bounded, and so is the time for which each may be silent
  // (stream_list.cc).
  void Add(const Ref& stream);
  // Removes a stream that has ended.
  void Remove(const Stream* stream);
  // Makes this life of worker `rank` the owner of the stream. A worker has at most
  // transport.channels streams for each shard. If the worker opens one more, its stream that has
  // been silent for longest ends. After a broken connection that is a dead stream. So a worker that
  // keeps opening streams does not get more of them than others. A life that was replaced cannot
  // own streams, so its streams have no owner.
  void Belongs(uint32_t rank, uint64_t incarnation, const Ref& stream);
  // Makes another server the owner of the stream. That server sends the blocks for a replica here,
  // on one stream for each shard.
  void BelongsToServer(const Ref& stream);
  // Reports that this life of the rank has attached. The streams of the rank's earlier lives end.
  void OnAttach(uint32_t rank, uint64_t incarnation);
  // Ends stalled streams. Call this a few times a second.
  void Tick(Time now);

  // The maximum numbers of streams of one rank and of all servers, and the bytes that may wait for
  // each peer to read them.
  struct Limits {
    uint32_t of_rank = 0;
    uint32_t of_servers = 0;
    uint64_t unread_bytes = std::numeric_limits<uint64_t>::max();
  };
  // Sets the limits. Until this call the list ends no stream that has an owner, and any number of
  // bytes may wait.
  void SetLimits(const Limits& limits);
  uint64_t unread_bytes_max() const { return unread_bytes_max_.load(std::memory_order_relaxed); }

  size_t size() const;

 private:
  struct Entry {
    std::weak_ptr<Stream> stream;
    // The life that owns the stream. Only for a worker's stream.
    uint64_t incarnation = 0;
  };
  using Streams = absl::flat_hash_map<const Stream*, Entry>;
  struct Worker {
    // The newest life that has attached.
    uint64_t incarnation = 0;
    Streams streams;
  };

  // Moves the stream into `to`, the streams of one owner. Returns the stream that must end
  // because of the limit, or null.
  Ref Move(const Ref& stream, uint64_t incarnation, Streams& to, size_t limit) REQUIRES(mutex_);

  std::atomic<uint64_t> unread_bytes_max_{Limits().unread_bytes};
  mutable Mutex mutex_;
  uint32_t of_rank_max_ GUARDED_BY(mutex_) = 0;
  uint32_t of_servers_max_ GUARDED_BY(mutex_) = 0;
  Streams nobodys_ GUARDED_BY(mutex_);
  Streams of_servers_ GUARDED_BY(mutex_);
  std::map<uint32_t, Worker> of_ranks_ GUARDED_BY(mutex_);
  // For each stream: the map of its owner, which contains the stream.
  absl::flat_hash_map<const Stream*, Streams*> all_ GUARDED_BY(mutex_);
};

}  // namespace leeway
