// Memory that two processes of one host and one user share. Its owner makes a SharedArena, tells
// the peer where it is (MemoryOffer), and the peer maps it for reading; after that only offsets
// travel. There is no file and no name: when the processes are gone, however they went, so is the
// memory.
//
// The arena begins with a page that holds the offer's nonce and the session words. A session is the
// owner's promise to a peer that ranges it named stay as they are. Where the owner has to break it
// (a reader is too slow, or is given up for dead), it first withdraws the session's number, and the
// reader, who looks for the number after its copy, throws the copy away:
//
//   owner: CloseSession (word = 0, sequentially consistent); then writes into the range
//   reader: copies the range; then SessionStands (full fence, reads the word)
//
// This is the reader's half of a sequence lock (Boehm, "Can seqlocks get along with programming
// language memory models?", 2012). If the copy has one byte that was written after CloseSession,
// the fences order the word's zero before the reader's look at it: it sees the zero, or the number
// of a later session, never its own. The fences are full ones, for what memcpy uses (streaming
// stores, string instructions) is not ordered by less. In the language's terms the copy races with
// the writes, as everything between processes does; what makes it sound is that its bytes are not
// looked at before the number is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/buffer.h"
#include "common/descriptor.h"
#include "common/mutex.h"
#include "leeway/v1/parameter_server.pb.h"

namespace leeway {

// The most that one arena may have, and a peer may offer: it bounds address space, not memory.
inline constexpr uint64_t kSharedBytesMax = uint64_t{1} << 40;

// A session's place in its arena and what stands there while it is open. Never 0.
struct SharedSession {
  uint64_t offset = 0;
  uint64_t number = 0;
};

// The owner's end. Thread-safe. Lives as long as anybody holds it or memory of it.
class SharedArena : public std::enable_shared_from_this<SharedArena> {
 public:
  // For `bytes` of ranges, which cost nothing until they are allocated. INVALID_ARGUMENT beyond
  // kSharedBytesMax; the system's error where it does not give so much.
  static absl::StatusOr<std::shared_ptr<SharedArena>> Create(uint64_t bytes);
  ~SharedArena();
  SharedArena(const SharedArena&) = delete;
  SharedArena& operator=(const SharedArena&) = delete;

  // A range of its own, on a page's boundary, of unspecified content; goes back with the last
  // reference. Its memory is really there: touching it cannot fail. RESOURCE_EXHAUSTED if the arena
  // is full or the system has no memory for it.
  absl::StatusOr<std::shared_ptr<std::byte>> Allocate(uint64_t bytes);

  bool Contains(const void* address) const;
  // From the start of the arena. The address must be in it.
  uint64_t OffsetOf(const void* address) const;

  // RESOURCE_EXHAUSTED if as many are open as there are words for (511).
  absl::StatusOr<SharedSession> OpenSession();
  // Once for each. What the session's peer may be reading can be overwritten when this returns.
  void CloseSession(const SharedSession& session);

  // What a peer needs for SharedMapping::Map.
  v1::MemoryOffer Offer() const;

 private:
  SharedArena(Descriptor file, std::byte* memory, uint64_t bytes);
  absl::StatusOr<uint64_t> Take(uint64_t bytes, uint64_t& unbacked_from);
  void GiveBack(uint64_t offset, uint64_t bytes, bool backed);
  void GiveBackLocked(uint64_t offset, uint64_t bytes) REQUIRES(mutex_);
  absl::Status Back(uint64_t begin, uint64_t end);

  const Descriptor file_;
  std::byte* const memory_;
  const uint64_t bytes_;
  uint64_t nonce_ = 0;

  mutable Mutex mutex_;
  // Offset to bytes; no two touch.
  std::map<uint64_t, uint64_t> free_ GUARDED_BY(mutex_);
  // Pages from here on may have no memory yet.
  uint64_t backed_ GUARDED_BY(mutex_);
  std::vector<uint64_t> free_sessions_ GUARDED_BY(mutex_);
};

// The peer's end: another process's arena, for reading. Thread-safe. Stays readable when the owner
// is gone.
class SharedMapping {
 public:
  // Trusts nothing in the offer. INVALID_ARGUMENT: its size cannot be; NOT_FOUND: there is no such
  // process or file; PERMISSION_DENIED: it is another user's, or the system forbids it;
  // FAILED_PRECONDITION: it is not memory that cannot shrink, or not that which was offered.
  static absl::StatusOr<std::shared_ptr<SharedMapping>> Map(const v1::MemoryOffer& offer);
  ~SharedMapping();
  SharedMapping(const SharedMapping&) = delete;
  SharedMapping& operator=(const SharedMapping&) = delete;

  // What lies there; valid for as long as the mapping. INVALID_ARGUMENT unless both are multiples
  // of 4 and the range is in the arena, behind its first page.
  absl::StatusOr<std::span<const float>> Floats(uint64_t offset, uint64_t bytes) const;

  // True if what was copied before this call was so while the session stood. False for what cannot
  // be a session.
  bool SessionStands(const SharedSession& session) const;

 private:
  SharedMapping(const std::byte* memory, uint64_t bytes) : memory_(memory), bytes_(bytes) {}

  const std::byte* const memory_;
  const uint64_t bytes_;
};

// `size` zeroed floats: in the arena, or on the heap where there is none or it is full.
FloatBuffer MakeFloats(SharedArena* arena, size_t size);

}  // namespace leeway
