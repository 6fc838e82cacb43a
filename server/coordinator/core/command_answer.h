// What the host tells the coordinator's core: how its commands went (command.h), and what the host
// itself has seen.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "leeway/v1/checkpoint.pb.h"

namespace leeway {

struct ConfigureDone {
  uint32_t server = 0;
  uint64_t round = 0;
  absl::Status status;
};

struct SaveDone {
  uint32_t shard = 0;
  uint64_t round = 0;
  uint64_t clock = 0;
  absl::StatusOr<v1::SavedShard> saved;
};

struct RecordDone {
  v1::CoordinatorRecord record;
  absl::Status status;
};

struct ManifestWritten {
  uint64_t clock = 0;
  absl::Status status;
};

struct ShutdownDone {
  uint32_t server = 0;
};

// Nobody listens any more at the address of that server's process (server_watch.h). Shards that
// have a replica continue there at once. For the others, the server's lease or the process that
// replaces it decides.
struct ServerGone {
  uint32_t server = 0;
  uint64_t nonce = 0;
};

// The run folder was removed, so nothing that the job makes can be kept: the job fails at once.
struct RunFolderGone {
  std::string why;
};

using CommandAnswer = std::variant<ConfigureDone, SaveDone, RecordDone, ManifestWritten,
                                   ShutdownDone, ServerGone, RunFolderGone>;

}  // namespace leeway
