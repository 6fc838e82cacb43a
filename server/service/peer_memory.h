// The memory that a stream's peer on this host has offered. Requests name ranges of it in place of
// payloads: a worker's contributions, or the blocks of another server.
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
  // Whether the peer has a session, as a server has. Such a peer reuses its memory as soon as it
  // ends the session, and reads nothing here.
  bool has_session() const { return session_.number != 0; }
  // Whether the session still stands, so that what was read is valid.
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
