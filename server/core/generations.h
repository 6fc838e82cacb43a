// What is a possible generation.
#pragma once

#include <cstdint>

namespace leeway {

// How many generations a request may be ahead of its receiver. A generation counts how often the
// job has gone back to a checkpoint. No job goes back this often, so more is not a valid request.
inline constexpr uint64_t kGenerationsAhead = uint64_t{1} << 20;

}  // namespace leeway
