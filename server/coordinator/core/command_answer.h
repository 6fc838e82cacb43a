// What the host tells the coordinator's core: the results of the core's commands (command.h), and
// what the host itself has noticed.
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

// No process listens any more at the address of that server (server_watch.h). Shards of that server
// that have a replica continue on the replica at once. For its other shards, the core waits until
// the server's lease ends or another process replaces the server.
struct ServerGone {
  uint32_t server = 0;
  uint64_t nonce = 0;
};

// The run folder was removed, so no result of the job can be kept. The job therefore fails at once.
struct RunFolderGone {
  std::string why;
};

using CommandAnswer = std::variant<ConfigureDone, SaveDone, RecordDone, ManifestWritten,
                                   ShutdownDone, ServerGone, RunFolderGone>;

}  // namespace leeway
