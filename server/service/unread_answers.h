// The answers that a stream's worker has not taken yet: frames of replies that wait to leave, and
// versions that the worker may be reading in the server's memory. Each of the two is bounded by
// limits.unread_bytes. So a worker that does not read holds no more of the server's memory.
//
// Versions in shared memory are released when the worker says `released`. Versions beyond their
// bound travel in frames. Frames leave when the worker reads. Beyond their bound the server stops
// reading from the worker until it reads its answers. Waiting answers are taken back, and refused,
// only after nothing has left for long. Until then they are only references to versions, most of
// which exist anyway.
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

// Not thread-safe. `limit` is limits.unread_bytes, which a server learns when it joins. `rank`
// names the worker once it is known.
class UnreadAnswers {
 public:
  // What the answer needs to know about its request.
  struct Asked {
    uint64_t id = 0;
    bool wants_values = false;
  };
  // From now on values in this memory, which the worker maps, are named and not sent.
  void SetMemory(std::shared_ptr<SharedArena> memory) { memory_ = std::move(memory); }
  const std::shared_ptr<SharedArena>& memory() const { return memory_; }

  // Puts a shard's answer into the newest frame. Returns false if the worker does not read; the
  // frame then gets RESOURCE_EXHAUSTED with a retry hint in place of the answer.
  bool Add(const Asked& asked, absl::StatusOr<BlockReading> reading, uint64_t limit,
           std::optional<uint32_t> rank);
  // The frame for the next reply: the newest one, or another one if that is full.
  v1::ReplyFrame& OpenFrame();
  // Adds values to a reply of the open frame. Returns false if it put RESOURCE_EXHAUSTED with a
  // retry hint there instead.
  bool AddPayload(PayloadBytes payload, uint64_t limit, std::optional<uint32_t> rank,
                  v1::StreamReply& reply);
  // Whether the worker may hold `bytes` more in the server's memory. The first version may have any
  // size, so a bound below one block stops no worker.
  bool may_hold(uint64_t bytes, uint64_t limit) const;
  // Such values stay unchanged until Release(id), where `id` is that of the reply that names them.
  void Hold(uint64_t id, SharedFloats values);
  void Release(uint64_t id);
  bool holds(uint64_t id) const { return held_.contains(id); }

  // Whether more waits to leave than is allowed, so that the worker's stream must not be read.
  bool beyond(uint64_t limit) const;
  // The worker does not read. Takes back what waits to leave beyond `limit`, and returns the
  // number of answers.
  uint64_t TakeBack(Time now, uint64_t limit, std::optional<uint32_t> rank);

  // Whether more than one frame waits to leave.
  bool crowded() const { return frames_.size() > 1; }
  bool empty() const { return frames_.empty(); }
  // Whether what waits should leave without waiting for more: one large answer, or many small ones.
  // Many answers then share the cost of a frame, and the worker can begin while the rest is being
  // computed.
  bool worth_a_frame() const;
  // Takes the oldest frame, which is being written until OnWritten.
  grpc::ByteBuffer BeginWrite(Time now);
  void OnWritten();
  // The worker reads no more.
  void Clear();

 private:
  // Replies that will leave in one message.
  struct Frame {
    FrameHead<v1::ReplyFrame> head;
    FrameWriter payload;
  };

  std::deque<Frame> frames_;
  // Whether there is a large answer among them.
  bool large_ = false;
  // The payload bytes of the waiting frames, and of the frame that is being written, with the time
  // since when.
  uint64_t unread_bytes_ = 0;
  uint64_t writing_bytes_ = 0;
  bool writing_ = false;
  Time write_began_{};
  // Whether that frame does not leave, and more waits than is allowed.
  bool stalled_ = false;
  // Null: the worker does not map it.
  std::shared_ptr<SharedArena> memory_;
  // By reply: the values that the worker may be reading.
  absl::flat_hash_map<uint64_t, SharedFloats> held_;
  uint64_t held_bytes_ = 0;
};

}  // namespace leeway
