// The answers that a stream's worker has not received yet: frames of replies that wait to leave,
// and versions that the worker may be reading in the server's memory. limits.unread_bytes bounds
// each of the two, so a worker that does not read occupies a bounded amount of the server's memory.
// Versions in shared memory are released when the worker sends `released`. Versions beyond the
// bound are sent in frames. Frames leave when the worker reads. If the frames exceed the bound, the
// server stops reading from the worker until the worker reads its answers. Only if no frame has
// left for long, the server takes back the waiting answers and refuses them. Until then they cost
// little, because they are references to versions, and most of these versions exist anyway.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

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

// Not thread-safe. `limit` is limits.unread_bytes, which a server learns when it joins.
class UnreadAnswers {
 public:
  // The facts about a request that its answer depends on.
  struct Asked {
    uint64_t id = 0;
    bool wants_values = false;
  };
  // Names the worker in later refusals.
  void SetRank(uint32_t rank) { rank_ = rank; }
  // Offers the server's memory to the worker in `answer`, once. From then on answers do not contain
  // values, but refer to values in this memory.
  void ShareMemory(const std::shared_ptr<SharedArena>& memory, v1::MemoryAnswer& answer);

  // Puts a shard's answer into the newest frame. If the worker does not read, puts
  // RESOURCE_EXHAUSTED with a retry hint into the frame instead, and returns false.
  bool Add(const Asked& asked, absl::StatusOr<BlockReading> reading, uint64_t limit);
  // Returns the frame for the next reply: the newest frame, or a new frame if the newest one is
  // full.
  v1::ReplyFrame& OpenFrame();
  // Adds values to a reply of the open frame. Returns false if the reply got RESOURCE_EXHAUSTED
  // with a retry hint instead.
  bool AddPayload(PayloadBytes payload, uint64_t limit, v1::StreamReply& reply);
  // Returns true if the worker may hold `bytes` more in the server's memory. It may always hold one
  // version, so that a bound below the size of a block stops no worker.
  bool may_hold(uint64_t bytes, uint64_t limit) const;
  // Keeps values in the server's memory unchanged until Release(id). `id` is the number of the
  // reply that refers to the values.
  void Hold(uint64_t id, SharedFloats values);
  void Release(uint64_t id);
  bool holds(uint64_t id) const { return held_.contains(id); }

  // Returns true if more bytes wait to leave than `limit` allows, so that the server must not read
  // from the worker's stream.
  bool beyond(uint64_t limit) const;
  // If the worker has not read for long, takes back the answers that wait beyond `limit`. Returns
  // their number.
  uint64_t TakeBack(Time now, uint64_t limit);

  // Returns true if more than one frame waits to leave.
  bool crowded() const { return frames_.size() > 1; }
  bool empty() const { return frames_.empty(); }
  // Returns true if the waiting answers should leave now, because there is a large one or many
  // small ones. Small answers share the cost of a frame. The worker can begin with them while the
  // server computes the others.
  bool worth_a_frame() const;
  // Removes and returns the oldest frame. The frame counts as being written until OnWritten.
  grpc::ByteBuffer BeginWrite(Time now);
  void OnWritten();
  // Drops everything and ends the worker's session in the memory, because it reads no more.
  void Clear();

 private:
  // Replies that will leave in one message.
  struct Frame {
    FrameHead<v1::ReplyFrame> head;
    FrameWriter payload;
  };

  std::deque<Frame> frames_;
  // True if there is a large answer in `frames_`.
  bool large_ = false;
  // The payload bytes of the waiting frames.
  uint64_t unread_bytes_ = 0;
  // The payload bytes of the frame that is being written, and the time at which the write began.
  uint64_t writing_bytes_ = 0;
  bool writing_ = false;
  Time write_began_{};
  // True while more bytes wait than are allowed and the frame that is being written does not leave.
  bool stalled_ = false;
  std::optional<uint32_t> rank_;
  // The server's memory, and the worker's session in it. Null if the worker does not map it.
  std::shared_ptr<SharedArena> memory_;
  SharedSession session_;
  // By the number of the reply: the values that the worker may be reading.
  absl::flat_hash_map<uint64_t, SharedFloats> held_;
  uint64_t held_bytes_ = 0;
};

}  // namespace leeway
