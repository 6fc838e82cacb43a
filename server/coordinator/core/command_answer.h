// What the service tells the coordinator's core: how its commands went (command.h), and what it has
// seen itself.
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

// Nobody listens any more where that process of the server was (server_watch.h): where its shards
// live on elsewhere they do so at once. Otherwise its lease or its successor decides.
struct ServerGone {
  uint32_t server = 0;
  uint64_t nonce = 0;
};

// Nothing that the job makes can be kept: it fails at once.
struct RunFolderGone {
  std::string why;
};

using CommandAnswer = std::variant<ConfigureDone, SaveDone, RecordDone, ManifestWritten,
                                   ShutdownDone, ServerGone, RunFolderGone>;

}  // namespace leeway
