#include "tests/worker/device/happens_before.h"

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"

namespace leeway::testing {
namespace {

bool Overlap(const Access& a, const Access& b) {
  const auto begin_a = reinterpret_cast<uintptr_t>(a.data);
  const auto begin_b = reinterpret_cast<uintptr_t>(b.data);
  return begin_a < begin_b + b.bytes && begin_b < begin_a + a.bytes;
}

const char* Does(const Access& access) { return access.writes ? "writes" : "reads"; }

}  // namespace

const char* NameOf(Stream stream) {
  constexpr std::array<const char*, kStreams> kNames = {"compute", "up", "down"};
  return kNames[static_cast<size_t>(stream)];
}

void HappensBefore::Join(Clock& clock, const Clock& other) {
  for (size_t i = 0; i < kStreams; ++i) clock[i] = std::max(clock[i], other[i]);
}

const HappensBefore::Past* HappensBefore::Conflict(const Clock& clock, const Access& access) const {
  for (const Past& past : past_) {
    if (!past.access.writes && !access.writes) continue;
    if (past.number <= clock[static_cast<size_t>(past.stream)]) continue;
    if (Overlap(past.access, access)) return &past;
  }
  return nullptr;
}

std::optional<std::string> HappensBefore::Queue(Stream stream, const char* what,
                                                const std::vector<Access>& accesses) {
  const auto index = static_cast<size_t>(stream);
  Clock& clock = clocks_[index];
  Join(clock, host_);
  std::optional<std::string> problem;
  for (const Access& access : accesses) {
    const Past* const past = Conflict(clock, access);
    if (past == nullptr) continue;
    problem =
        absl::StrCat(what, " (", NameOf(stream), ") ", Does(access), " what ", past->what, " (",
                     NameOf(past->stream), ") ", Does(past->access), ", and nothing orders them");
  }
  for (const Access& access : accesses) {
    for (const Access& use : host_uses_) {
      if ((!use.writes && !access.writes) || !Overlap(use, access)) continue;
      problem = absl::StrCat(what, " (", NameOf(stream), ") ", Does(access),
                             " what the host still ", Does(use));
    }
  }
  ++clock[index];
  for (const Access& access : accesses) past_.push_back({stream, clock[index], what, access});
  return problem;
}

void HappensBefore::Record(Stream stream, StreamEvent event) {
  Clock& clock = clocks_[static_cast<size_t>(stream)];
  Join(clock, host_);
  events_[event.number] = clock;
}

void HappensBefore::Wait(Stream stream, StreamEvent event) {
  const auto found = events_.find(event.number);
  if (found != events_.end()) Join(clocks_[static_cast<size_t>(stream)], found->second);
}

void HappensBefore::HostSees(StreamEvent event) {
  const auto found = events_.find(event.number);
  if (found == events_.end()) return;
  Join(host_, found->second);
  std::erase_if(past_, [this](const Past& past) {
    return past.number <= host_[static_cast<size_t>(past.stream)];
  });
  // These events tell the host nothing new.
  std::erase_if(events_, [this](const auto& event) {
    const Clock& clock = event.second;
    return std::equal(clock.begin(), clock.end(), host_.begin(), std::less_equal<>());
  });
}

std::optional<std::string> HappensBefore::InUse(const Access& memory) const {
  const Past* const past = Conflict(host_, memory);
  if (past == nullptr) return std::nullopt;
  return absl::StrCat(past->what, " (", NameOf(past->stream), ") ", Does(past->access),
                      " it, and nobody has waited for that");
}

std::optional<std::string> HappensBefore::HostBegins(const Access& memory) {
  host_uses_.push_back(memory);
  return InUse(memory);
}

void HappensBefore::HostEnds(const void* data) {
  std::erase_if(host_uses_, [data](const Access& use) { return use.data == data; });
}

}  // namespace leeway::testing
