#include "common/room.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/control_groups.h"
#include "common/exit_code.h"
#include "common/status.h"

namespace leeway {
namespace {

// The address space for a few buffers and the heap (common/memory.h), in addition to the stacks.
constexpr size_t kHeapBytes = 128 << 20;
constexpr size_t kSmallStackBytes = 64 << 10;

rlim_t LimitOf(int resource) {
  rlimit limit{};
  return getrlimit(resource, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

// Returns a description of the limits that are set, for messages.
std::string LimitsSet() {
  std::vector<std::string> set;
  if (const std::optional<ProcessLimit> groups = ProcessLimitOfGroups()) {
    set.push_back(absl::StrCat(groups->file, " is ", groups->processes));
  }
  const rlim_t processes = LimitOf(RLIMIT_NPROC), space = LimitOf(RLIMIT_AS);
  if (processes != RLIM_INFINITY) set.push_back(absl::StrCat("ulimit -u is ", processes));
  if (space != RLIM_INFINITY) set.push_back(absl::StrCat("ulimit -v is ", space >> 10));
  if (set.empty()) set.emplace_back("see /proc/sys/kernel/threads-max and pid_max");
  return absl::StrJoin(set, ", ");
}

// Threads that wait until this object is destroyed.
class WaitingThreads {
 public:
  WaitingThreads() { pthread_mutex_lock(&held_); }
  ~WaitingThreads() {
    pthread_mutex_unlock(&held_);
    for (const pthread_t thread : threads_) pthread_join(thread, nullptr);
  }

  // Starts `count` threads. Returns 0 if all of them started. Otherwise returns pthread_create's
  // error for the first thread that could not start.
  int Add(uint32_t count, std::optional<size_t> stack_bytes) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (stack_bytes) pthread_attr_setstacksize(&attributes, *stack_bytes);
    int error = 0;
    for (uint32_t i = 0; i < count && error == 0; ++i) {
      pthread_t thread;
      error = pthread_create(&thread, &attributes, Wait, &held_);
      if (error == 0) threads_.push_back(thread);
    }
    pthread_attr_destroy(&attributes);
    return error;
  }
  size_t size() const { return threads_.size(); }

 private:
  static void* Wait(void* held) {
    auto* mutex = static_cast<pthread_mutex_t*>(held);
    pthread_mutex_lock(mutex);
    pthread_mutex_unlock(mutex);
    return nullptr;
  }

  pthread_mutex_t held_ = PTHREAD_MUTEX_INITIALIZER;
  std::vector<pthread_t> threads_;
};

absl::Status CheckFiles(uint32_t files) {
  const rlim_t limit = LimitOf(RLIMIT_NOFILE);
  if (limit >= files) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("the limit of open files (ulimit -n) is ", limit,
                                                   ", but at least ", files, " are needed"));
}

bool HasHeap() {
  void* const heap = mmap(nullptr, kHeapBytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return heap != MAP_FAILED && munmap(heap, kHeapBytes) == 0;
}

// Reports that memory is exhausted. Allocates no memory.
void TellOfMemory() {
  const rlim_t space = LimitOf(RLIMIT_AS);
  std::fprintf(stderr, "%s: out of memory", program_invocation_short_name);
  if (space != RLIM_INFINITY) {
    std::fprintf(stderr, ": ulimit -v is %llu", static_cast<unsigned long long>(space >> 10));
  }
  std::fputc('\n', stderr);
}

void EndForMemory() {
  try {
    if (const auto thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    TellOfMemory();
    _exit(kExitTemporary);
  } catch (...) {
    // Handle all other exceptions as if this handler did not exist.
    __gnu_cxx::__verbose_terminate_handler();
  }
}

}  // namespace

void NameLimitsOfMemory() { std::set_terminate(EndForMemory); }

absl::Status CheckRoom(const Room& needed) {
  RETURN_IF_ERROR(CheckFiles(needed.files));
  WaitingThreads waiting;
  int error = waiting.Add(needed.threads, std::nullopt);
  if (error == 0 && !HasHeap()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot reserve ", kHeapBytes >> 20, " MiB of address space: ", LimitsSet()));
  }
  if (error == 0) error = waiting.Add(needed.others, kSmallStackBytes);
  if (error == 0) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("only ", waiting.size(), " of ", needed.threads + needed.others,
                   " threads can be started (", strerror(error), "): ", LimitsSet()));
}

}  // namespace leeway
