// Loops that become vector instructions even if arrays overlap, because each group of elements is
// computed in a local array.
#pragma once

#include <array>
#include <cstddef>

namespace leeway {

// Computes out[i] = function(in[i]...) for i in [begin, end). `out` may be one of the inputs. The
// compiler would not vectorise a plain loop over pointers that may be equal.
template <typename Function, typename... In>
void MapElements(size_t begin, size_t end, float* out, Function function, const In*... in) {
  constexpr size_t kGroup = 32;
  size_t i = begin;
  for (; i + kGroup <= end; i += kGroup) {
    std::array<float, kGroup> group;
    for (size_t lane = 0; lane < kGroup; ++lane) group[lane] = function(in[i + lane]...);
    for (size_t lane = 0; lane < kGroup; ++lane) out[i + lane] = group[lane];
  }
  for (; i < end; ++i) out[i] = function(in[i]...);
}

// Calls visit.template operator()<width>(first) for groups that cover the channels [0, channels).
// The compiler knows the width, so it keeps a group in registers.
template <typename Visit>
void ForChannelGroups(size_t channels, Visit visit) {
  size_t first = 0;
  for (; first + 16 <= channels; first += 16) visit.template operator()<16>(first);
  for (; first + 8 <= channels; first += 8) visit.template operator()<8>(first);
  for (; first < channels; ++first) visit.template operator()<1>(first);
}

}  // namespace leeway
