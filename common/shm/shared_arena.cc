#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <iterator>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/descriptor.h"
#include "common/identity.h"
#include "common/shm/shared_layout.h"
#include "common/shm/shared_memory.h"
#include "common/status.h"

namespace leeway {
namespace {

SharedHeader& HeaderOf(std::byte* memory) { return *reinterpret_cast<SharedHeader*>(memory); }

uint64_t WholePages(uint64_t bytes) {
  return std::max(kSharedPageBytes,
                  (bytes + kSharedPageBytes - 1) / kSharedPageBytes * kSharedPageBytes);
}

}  // namespace

absl::StatusOr<std::shared_ptr<SharedArena>> SharedArena::Create(uint64_t bytes) {
  if (bytes > kSharedBytesMax - kSharedPageBytes) {
    return absl::InvalidArgumentError(absl::StrCat("shared memory of ", bytes,
                                                   " bytes is too large; the maximum is ",
                                                   kSharedBytesMax - kSharedPageBytes));
  }
  const uint64_t all = kSharedPageBytes + WholePages(bytes);
  const std::string doing = absl::StrCat("making ", all, " bytes of shared memory");
  Descriptor file(memfd_create("leeway", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (*file < 0 || ftruncate(*file, static_cast<off_t>(all)) != 0 ||
      fcntl(*file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return absl::ErrnoToStatus(errno, doing);
  }
  void* memory = mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_SHARED, *file, 0);
  if (memory == MAP_FAILED) return absl::ErrnoToStatus(errno, doing);
  std::shared_ptr<SharedArena> arena(
      new SharedArena(std::move(file), static_cast<std::byte*>(memory), all));
  RETURN_IF_ERROR(Annotate(arena->Back(0, kSharedPageBytes), doing));
  HeaderOf(arena->memory_).nonce = arena->nonce_;
  return arena;
}

SharedArena::SharedArena(Descriptor file, std::byte* memory, uint64_t bytes)
    : file_(std::move(file)),
      memory_(memory),
      bytes_(bytes),
      nonce_(RandomIdentity()),
      free_({{kSharedPageBytes, bytes - kSharedPageBytes}}),
      backed_(kSharedPageBytes) {
  // Add the sessions in reverse order, because OpenSession takes the last session in the list.
  for (size_t i = SharedHeader::kSessions; i > 0; --i) {
    free_sessions_.push_back(SharedHeader::SessionOffset(i - 1));
  }
}

SharedArena::~SharedArena() { munmap(memory_, bytes_); }

absl::StatusOr<std::shared_ptr<std::byte>> SharedArena::Allocate(uint64_t bytes) {
  if (bytes > bytes_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("shared memory has ", bytes_, " bytes, but the caller wants ", bytes));
  }
  const uint64_t whole = WholePages(bytes);
  uint64_t unbacked_from = 0;
  ASSIGN_OR_RETURN(const uint64_t offset, Take(whole, unbacked_from));
  if (unbacked_from < offset + whole) {
    if (absl::Status status = Back(unbacked_from, offset + whole); !status.ok()) {
      GiveBack(offset, whole, false);
      return status;
    }
  }
  return std::shared_ptr<std::byte>(memory_ + offset,
                                    [self = shared_from_this(), offset, whole](std::byte*) {
                                      self->GiveBack(offset, whole, true);
                                    });
}

// Takes the first free range that is large enough. Blocks have only one or two sizes, so this fills
// gaps and keeps the used pages at the beginning of the arena.
absl::StatusOr<uint64_t> SharedArena::Take(uint64_t bytes, uint64_t& unbacked_from) {
  MutexLock lock(mutex_);
  for (auto range = free_.begin(); range != free_.end(); ++range) {
    const auto [offset, size] = *range;
    if (size < bytes) continue;
    free_.erase(range);
    if (size > bytes) free_.emplace(offset + bytes, size - bytes);
    unbacked_from = std::max(offset, backed_);
    backed_ = std::max(backed_, offset + bytes);
    return offset;
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "the shared memory of ", bytes_, " bytes has no ", bytes, " contiguous free bytes"));
}

void SharedArena::GiveBack(uint64_t offset, uint64_t bytes, bool backed) {
  MutexLock lock(mutex_);
  // Pages after `offset` may be backed already. This code may forget that, because backing a page
  // twice has no effect.
  if (!backed) backed_ = std::min(backed_, offset);
  GiveBackLocked(offset, bytes);
}

void SharedArena::GiveBackLocked(uint64_t offset, uint64_t bytes) {
  const auto next = free_.lower_bound(offset);
  if (next != free_.end() && next->first == offset + bytes) {
    bytes += next->second;
    free_.erase(next);
  }
  const auto after = free_.lower_bound(offset);
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == offset) {
      before->second += bytes;
      return;
    }
  }
  free_.emplace(offset, bytes);
}

// Commits the memory now, so that a lack of memory is an error here and not a SIGBUS at a later
// write.
absl::Status SharedArena::Back(uint64_t begin, uint64_t end) {
#ifdef MADV_POPULATE_WRITE
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t from = begin / page * page;
  // This also faults in the pages, so that later writes are fast.
  if (madvise(memory_ + from, end - from, MADV_POPULATE_WRITE) == 0) return absl::OkStatus();
  if (errno != EINVAL) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the operating system refuses ", end - begin,
                     " bytes of shared memory: ", std::strerror(errno)));
  }
#endif
  // EINVAL means that the kernel is older than 5.14.
  const int error =
      posix_fallocate(*file_, static_cast<off_t>(begin), static_cast<off_t>(end - begin));
  if (error == 0) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the operating system has no ", end - begin,
                   " bytes left for shared memory: ", std::strerror(error)));
}

bool SharedArena::Contains(const void* address) const {
  const auto* at = static_cast<const std::byte*>(address);
  return std::greater_equal<>()(at, memory_) && std::less<>()(at, memory_ + bytes_);
}

uint64_t SharedArena::OffsetOf(const void* address) const {
  return static_cast<uint64_t>(static_cast<const std::byte*>(address) - memory_);
}

absl::StatusOr<SharedSession> SharedArena::OpenSession() {
  SharedSession session;
  while (session.number == 0) session.number = RandomIdentity();
  MutexLock lock(mutex_);
  if (free_sessions_.empty()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("all ", SharedHeader::kSessions, " sessions of the shared memory are in use"));
  }
  session.offset = free_sessions_.back();
  free_sessions_.pop_back();
  HeaderOf(memory_).sessions[SharedHeader::SessionIndex(session.offset)].store(session.number);
  return session;
}

void SharedArena::CloseSession(const SharedSession& session) {
  if (!SharedHeader::IsSession(session.offset)) return;
  std::atomic<uint64_t>& word =
      HeaderOf(memory_).sessions[SharedHeader::SessionIndex(session.offset)];
  uint64_t expected = session.number;
  // If the word has another number, the session was closed already, and the word may belong to a
  // later session. In this case do nothing.
  if (expected == 0 || !word.compare_exchange_strong(expected, 0)) return;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  MutexLock lock(mutex_);
  free_sessions_.push_back(session.offset);
}

v1::MemoryOffer SharedArena::Offer() const {
  v1::MemoryOffer offer;
  offer.set_pid(static_cast<uint32_t>(getpid()));
  offer.set_fd(static_cast<uint32_t>(*file_));
  offer.set_bytes(bytes_);
  offer.set_nonce(nonce_);
  return offer;
}

FloatBuffer MakeFloats(SharedArena* arena, size_t size) {
  if (arena == nullptr || size > kSharedBytesMax / sizeof(float)) return FloatBuffer(size);
  absl::StatusOr<std::shared_ptr<std::byte>> memory = arena->Allocate(size * sizeof(float));
  if (!memory.ok()) return FloatBuffer(size);
  float* floats = reinterpret_cast<float*>(memory->get());
  std::memset(floats, 0, size * sizeof(float));
  return FloatBuffer(std::shared_ptr<float>(std::move(*memory), floats), size);
}

}  // namespace leeway
