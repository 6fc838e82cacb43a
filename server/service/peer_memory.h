// The memory that a stream's peer on this host has offered. Instead of a payload, a request then
// names a range of this memory: a worker's contribution, or a block of another server.
#pragma once

#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/shm/shared_memory.h"
#include "common/wire/payload.h"
#include "leeway/v1/parameter_server.pb.h"

namespace leeway {

// Not thread-safe.
class PeerMemory {
 public:
  // Maps the memory that the frame offers.
  absl::Status Map(const v1::RequestFrame& head);
  // Returns true if the peer has a session in its memory, as servers have. Such a peer reads
  // nothing here. It may reuse its memory as soon as it ends the session, so check SessionStands()
  // after reading.
  bool has_session() const { return session_.number != 0; }
  // Returns true if the peer has not ended the session, so that the values that were read are
  // valid.
  bool SessionStands() const { return mapping_->SessionStands(session_); }

  // Return the values that a request names, or INVALID_ARGUMENT.
  absl::StatusOr<FloatPayload> PayloadOf(const v1::StreamRequest& request) const;
  absl::StatusOr<FloatPayload> PartsOf(const v1::ReplicatedBlock& replicated) const;

 private:
  absl::StatusOr<std::span<const float>> FloatsOf(const v1::SharedRange& range) const;

  std::shared_ptr<SharedMapping> mapping_;
  SharedSession session_;
};

}  // namespace leeway
