// What a worker publishes for other workers to fetch (proto: Piece), in jobs whose workers exchange
// with each other. The worker's exchange publishes; the server in the worker's process answers the
// fetches (server/peers/piece_store.h). Client and server depend on this interface only.
#pragma once

#include <cstdint>
#include <span>

#include "common/blocks.h"
#include "leeway/v1/parameter_server.pb.h"

namespace leeway {

struct PieceName {
  v1::Piece piece = v1::PIECE_SUM;
  uint64_t clock = 0;
  uint32_t block = 0;
  auto operator<=>(const PieceName&) const = default;
};

// Thread-safe.
class Outbox {
 public:
  virtual ~Outbox() = default;

  // Begins a registration. Forgets all pieces. Fetches of another job or generation, or before the
  // first Open, are refused. `layout` outlives the last call that names a block.
  virtual void Open(uint64_t job, uint64_t generation, const BlockLayout& layout) = 0;
  // Returns memory for the block's values. Fill it, then call Publish with the same name. A piece
  // that is already published keeps its values until Publish, and fetches in progress keep them
  // until they are over.
  virtual std::span<float> Prepare(const PieceName& name) = 0;
  // Makes the piece available, and answers the fetches that wait for it. `examples` and `rates` are
  // sent with it (v1::VersionHeader).
  virtual void Publish(const PieceName& name, uint64_t examples, uint64_t rates) = 0;
  // Forgets the pieces of clocks below `clock`. A fetch of such a piece gets OUT_OF_RANGE from now
  // on.
  virtual void KeepFrom(uint64_t clock) = 0;
};

}  // namespace leeway
