// What a worker's process answers to other workers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "common/shm/shared_memory.h"
#include "server/peers/meeting_store.h"
#include "server/peers/piece_store.h"

namespace leeway {

struct PeerStores {
  // `rank` is the worker in this process. `memory` returns the memory that peers of this host map,
  // or null.
  PeerStores(uint32_t rank, const std::function<std::shared_ptr<SharedArena>()>& memory)
      : pieces(rank, memory), meetings(rank, memory) {}

  PieceStore pieces;
  MeetingStore meetings;
};

}  // namespace leeway
