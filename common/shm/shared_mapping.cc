#include <atomic>
#include <cerrno>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/descriptor.h"
#include "common/shm/shared_layout.h"
#include "common/shm/shared_memory.h"
#include "common/status.h"

namespace leeway {
namespace {

// Opens the process's folder in /proc. The caller opens the process's files with this descriptor.
// It never leads to a later process with the same number.
absl::StatusOr<Descriptor> OpenProcess(const std::string& path) {
  Descriptor process(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (*process < 0 && errno == ENOENT) {
    return absl::NotFoundError(
        "the process does not exist here: it has ended, or is in another container");
  }
  struct stat info;
  if (*process < 0 || fstat(*process, &info) != 0) return absl::ErrnoToStatus(errno, path);
  if (info.st_uid != geteuid()) {
    return absl::PermissionDeniedError(absl::StrCat(
        "the process belongs to user ", info.st_uid, ", but this process belongs to user ",
        geteuid(), ": only processes of one user can share memory"));
  }
  return process;
}

absl::StatusOr<Descriptor> OpenFile(int process, uint32_t number) {
  const std::string path = absl::StrCat("fd/", number);
  // The file may be a pipe or a terminal. With these flags the call does not wait for a pipe, and a
  // terminal does not become the controlling terminal.
  Descriptor file(openat(process, path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (*file >= 0) return file;
  switch (errno) {
    case ENOENT:
    case ESRCH:
      return absl::NotFoundError(absl::StrCat("the process has no open file ", number));
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError("the system does not let this process open the file");
    case ENXIO:
      return absl::FailedPreconditionError("the file is a socket or a device, not memory");
    default:
      return absl::ErrnoToStatus(errno, path);
  }
}

// Checks that the file is the offered memory and that it can never shrink, because reading memory
// that has shrunk raises SIGBUS.
absl::Status CheckFile(int file, const v1::MemoryOffer& offer) {
  const int seals = fcntl(file, F_GET_SEALS);
  if (seals < 0) return absl::FailedPreconditionError("the file is not shared memory (a memfd)");
  if ((seals & F_SEAL_SHRINK) == 0) {
    return absl::FailedPreconditionError("the memory could shrink: it is not sealed");
  }
  struct stat info;
  if (fstat(file, &info) != 0) return absl::ErrnoToStatus(errno, "reading the size of the memory");
  if (static_cast<uint64_t>(info.st_size) < offer.bytes()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the memory has ", info.st_size, " bytes, but the offer says ", offer.bytes()));
  }
  uint64_t nonce = 0;
  if (pread(file, &nonce, sizeof(nonce), 0) != sizeof(nonce) || nonce != offer.nonce()) {
    return absl::FailedPreconditionError(
        "the memory is not the offered one: the peer is on another host or in another "
        "container");
  }
  return absl::OkStatus();
}

// Opens, checks and maps the offered memory.
absl::StatusOr<const std::byte*> MapOffered(const v1::MemoryOffer& offer) {
  ASSIGN_OR_RETURN(const Descriptor process, OpenProcess(absl::StrCat("/proc/", offer.pid())));
  ASSIGN_OR_RETURN(const Descriptor file, OpenFile(*process, offer.fd()));
  RETURN_IF_ERROR(CheckFile(*file, offer));
  void* memory = mmap(nullptr, offer.bytes(), PROT_READ, MAP_SHARED, *file, 0);
  if (memory == MAP_FAILED) return absl::ErrnoToStatus(errno, "mapping the memory");
  return static_cast<const std::byte*>(memory);
}

}  // namespace

absl::StatusOr<std::shared_ptr<SharedMapping>> SharedMapping::Map(const v1::MemoryOffer& offer) {
  const std::string doing =
      absl::StrCat("mapping shared memory (file ", offer.fd(), " of process ", offer.pid(), ")");
  if (offer.bytes() < kSharedPageBytes || offer.bytes() > kSharedBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat(doing, ": ", offer.bytes(),
                                                   " bytes are offered; the size must be ",
                                                   kSharedPageBytes, " to ", kSharedBytesMax));
  }
  const absl::StatusOr<const std::byte*> memory = MapOffered(offer);
  if (!memory.ok()) return Annotate(memory.status(), doing);
  return std::shared_ptr<SharedMapping>(new SharedMapping(*memory, offer.bytes()));
}

SharedMapping::~SharedMapping() { munmap(const_cast<std::byte*>(memory_), bytes_); }

bool SharedMapping::Has(uint64_t offset, uint64_t bytes) const {
  return offset >= kSharedPageBytes && offset <= bytes_ && bytes <= bytes_ - offset;
}

absl::StatusOr<std::span<const float>> SharedMapping::Floats(uint64_t offset,
                                                             uint64_t bytes) const {
  if (!Has(offset, bytes) || offset % sizeof(float) != 0 || bytes % sizeof(float) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        bytes, " bytes at offset ", offset, " are not aligned floats inside the shared memory of ",
        bytes_, " bytes, which begins with a header of ", kSharedPageBytes, " bytes"));
  }
  return std::span<const float>(reinterpret_cast<const float*>(memory_ + offset),
                                bytes / sizeof(float));
}

absl::StatusOr<std::span<const std::atomic<uint64_t>>> SharedMapping::Words(uint64_t offset,
                                                                            uint64_t count) const {
  using Word = std::atomic<uint64_t>;
  const bool here = count <= bytes_ / sizeof(Word) && Has(offset, count * sizeof(Word));
  if (!here || offset % sizeof(Word) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        count, " words at offset ", offset, " are not aligned or not inside the shared memory of ",
        bytes_, " bytes, which begins with a header of ", kSharedPageBytes, " bytes"));
  }
  return std::span<const Word>(reinterpret_cast<const Word*>(memory_ + offset), count);
}

bool SharedMapping::SessionStands(const SharedSession& session) const {
  if (session.number == 0 || !SharedHeader::IsSession(session.offset)) return false;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const auto& header = *reinterpret_cast<const SharedHeader*>(memory_);
  const size_t index = SharedHeader::SessionIndex(session.offset);
  return header.sessions[index].load(std::memory_order_relaxed) == session.number;
}

}  // namespace leeway
