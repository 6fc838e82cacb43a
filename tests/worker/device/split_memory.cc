#include "tests/worker/device/split_memory.h"

#include <cstdint>
#include <cstring>

#include <sys/mman.h>
#include <unistd.h>

#include "absl/status/status.h"

namespace leeway::testing {
namespace {

constexpr size_t kAlign = 64;

}  // namespace

absl::StatusOr<std::unique_ptr<SplitMemory>> SplitMemory::Make(size_t bytes) {
  const int file = memfd_create("fake device", MFD_CLOEXEC);
  if (file < 0) return absl::ErrnoToStatus(errno, "memfd_create");
  void* outside = MAP_FAILED;
  void* inside = MAP_FAILED;
  if (ftruncate(file, static_cast<off_t>(bytes)) == 0) {
    outside = mmap(nullptr, bytes, PROT_NONE, MAP_SHARED, file, 0);
    inside = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  close(file);
  if (outside == MAP_FAILED || inside == MAP_FAILED) {
    return absl::ResourceExhaustedError("mapping a fake device's memory");
  }
  return std::unique_ptr<SplitMemory>(
      new SplitMemory(bytes, static_cast<char*>(outside), static_cast<char*>(inside)));
}

SplitMemory::~SplitMemory() {
  munmap(outside_, bytes_);
  munmap(inside_, bytes_);
}

float* SplitMemory::Take(size_t count) {
  const size_t wanted = (count * sizeof(float) + kAlign) / kAlign * kAlign;
  // The first gap that is large enough.
  const char* at = outside_;
  for (const auto& [data, bytes] : taken_) {
    const char* const begin = reinterpret_cast<const char*>(data);
    if (static_cast<size_t>(begin - at) >= wanted) break;
    at = begin + bytes;
  }
  if (static_cast<size_t>(outside_ + bytes_ - at) < wanted) return nullptr;
  auto* const data = reinterpret_cast<float*>(const_cast<char*>(at));
  taken_[data] = wanted;
  Poison(Inside(data), wanted);
  return data;
}

void SplitMemory::GiveBack(float* data) {
  Poison(Inside(data), taken_.at(data));
  taken_.erase(data);
}

bool SplitMemory::Holds(const void* data, size_t bytes) const {
  const auto* const begin = static_cast<const char*>(data);
  auto after = taken_.upper_bound(static_cast<const float*>(data));
  if (after == taken_.begin()) return false;
  const auto& [first, size] = *--after;
  return begin + bytes <= reinterpret_cast<const char*>(first) + size;
}

void Poison(void* data, size_t bytes) {
  auto* const out = static_cast<char*>(data);
  for (size_t i = 0; i + sizeof(SplitMemory::kPoison) <= bytes; i += sizeof(SplitMemory::kPoison)) {
    std::memcpy(out + i, &SplitMemory::kPoison, sizeof(SplitMemory::kPoison));
  }
}

size_t FirstPoisoned(const float* data, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, data + i, sizeof(bits));
    if (bits == SplitMemory::kPoison) return i;
  }
  return count;
}

}  // namespace leeway::testing
