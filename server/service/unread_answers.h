// What a stream's worker was answered and has not taken: frames of replies that wait to leave, and
// versions that it may be reading in the server's memory. Each has limits.unread_bytes for its
// bound, so that a worker that does not read holds no more of the server's memory.
//
// Versions in shared memory go when the worker says `released`; what would be beyond their bound
// travels in frames. Those leave when the worker reads, so beyond their bound it is not read from
// until it does; what waits is taken back, and refused, only once nothing has left for long. Until
// then answers are but references to versions, which mostly are there anyway.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include <grpcpp/support/byte_buffer.h>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/shm/shared_memory.h"
#include "common/wire/frame_head.h"
#include "common/wire/wire.h"
#include "leeway/v1/parameter_server.pb.h"
#include "server/shard/block_reading.h"
#include "server/store/shared_floats.h"

namespace leeway {

// Not thread-safe. `limit` is limits.unread_bytes, which a server learns when it has joined; `rank`
// names the worker, once it is known.
class UnreadAnswers {
 public:
  // What the answer to a request needs to know of it.
  struct Asked {
    uint64_t id = 0;
    bool wants_values = false;
  };
  // From now on values that lie in this memory, which the worker maps, are named, not sent.
  void SetMemory(std::shared_ptr<SharedArena> memory) { memory_ = std::move(memory); }
  const std::shared_ptr<SharedArena>& memory() const { return memory_; }

  // Puts what a shard has answered into the newest frame. False: in its place RESOURCE_EXHAUSTED
  // with a hint, for the worker does not read.
  bool Add(const Asked& asked, absl::StatusOr<BlockReading> reading, uint64_t limit,
           std::optional<uint32_t> rank);
  // Where the next reply goes: the newest frame, or another where that is full.
  v1::ReplyFrame& OpenFrame();
  // Values for a reply of the open frame, or in their place RESOURCE_EXHAUSTED with a hint. False:
  // refused.
  bool AddPayload(PayloadBytes payload, uint64_t limit, std::optional<uint32_t> rank,
                  v1::StreamReply& reply);
  // There is room for so many bytes more that the worker reads where they are. The first of all
  // may have any size: a bound below one block stops nobody.
  bool may_hold(uint64_t bytes, uint64_t limit) const;
  // Such values: they stay so until Release(id), of the reply that names them.
  void Hold(uint64_t id, SharedFloats values);
  void Release(uint64_t id);
  bool holds(uint64_t id) const { return held_.contains(id); }

  // More waits to leave than may: the worker is not to be read from.
  bool beyond(uint64_t limit) const;
  // The worker does not read: takes back what waits to leave beyond `limit`. How many answers.
  uint64_t TakeBack(Time now, uint64_t limit, std::optional<uint32_t> rank);

  // More waits to leave than one frame.
  bool crowded() const { return frames_.size() > 1; }
  bool empty() const { return frames_.empty(); }
  // What waits to leave need not wait for more: there is a large answer, or many small ones. Then a
  // frame's own cost is shared, and the worker begins while the rest is done.
  bool worth_a_frame() const;
  // The oldest frame, which leaves from now until OnWritten.
  grpc::ByteBuffer BeginWrite(Time now);
  void OnWritten();
  // Nobody reads any more.
  void Clear();

 private:
  // Replies on their way into one message.
  struct Frame {
    FrameHead<v1::ReplyFrame> head;
    FrameWriter payload;
  };

  std::deque<Frame> frames_;
  // There is a large answer among them.
  bool large_ = false;
  // Payload of the frames, and of the one that leaves, since when.
  uint64_t unread_bytes_ = 0;
  uint64_t writing_bytes_ = 0;
  bool writing_ = false;
  Time write_began_{};
  // That one does not leave, and more waits than may.
  bool stalled_ = false;
  // Null: the worker does not map it.
  std::shared_ptr<SharedArena> memory_;
  // By reply: what the worker may be reading.
  absl::flat_hash_map<uint64_t, SharedFloats> held_;
  uint64_t held_bytes_ = 0;
};

}  // namespace leeway
