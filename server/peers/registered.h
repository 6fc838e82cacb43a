// The registration for which the worker in this process answers other workers.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "leeway/v1/parameter_server.pb.h"

namespace leeway {

struct Registered {
  struct Life {
    uint64_t job = 0;
    uint64_t generation = 0;
    bool operator==(const Life&) const = default;
  };

  // Returns OK if the request is for this registration. Returns UNAVAILABLE if the worker has not
  // registered for the request's generation yet, FAILED_PRECONDITION for another job or an older
  // generation, and INVALID_ARGUMENT for an impossible generation. `rank` is this process's worker.
  absl::Status Check(uint32_t rank, uint64_t job, uint64_t generation) const;

  // Absent before the worker has registered for the first time.
  std::optional<Life> life = std::nullopt;
};

}  // namespace leeway
