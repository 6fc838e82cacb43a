// The commands of the coordinator's core. The host carries them out in order; a test examines them.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "common/clock.h"
#include "leeway/v1/checkpoint.pb.h"
#include "leeway/v1/coordinator.pb.h"
#include "run/core/records.h"

namespace leeway {

// Sets the address of the server's ShardControl. The host sends later commands for the server to
// that address, and drops earlier ones. If the process at that address ends, the host reports
// ServerGone with this nonce.
struct ConnectServer {
  uint32_t server = 0;
  std::string address;
  uint64_t nonce = 0;
};

// Says that the server is lost. The host drops commands for it until a ConnectServer for it comes:
// a server that comes back gets its state anew.
struct DisconnectServer {
  uint32_t server = 0;
};

// The host answers with ConfigureDone of the same round.
struct ConfigureServer {
  uint32_t server = 0;
  uint64_t round = 0;
  v1::ConfigureRequest request;
  Time deadline;
};

// The host sends this command to every server, in the order of the commands, and repeats the
// command until the server has received it.
struct SetLive {
  uint32_t rank = 0;
  bool live = false;
  bool operator==(const SetLive&) const = default;
};

// The host sends this command to every server, in the order of the commands, and repeats the
// command until the server has received it.
struct CommitSet {
  uint64_t generation = 0;
  uint64_t clock = 0;
  // The ranks whose contributions make the clock, in ascending order.
  std::vector<uint32_t> ranks;
  bool operator==(const CommitSet&) const = default;
};

// Asks the owner of every shard for its part of the last cut. For each owner the host answers with
// SaveDone of the same round. If shards change owners meanwhile, the core asks again. Only the
// answers to the latest command count, because they describe what is in the files.
struct SaveAll {
  uint64_t round = 0;
  uint64_t generation = 0;
  uint64_t clock = 0;
  // The owner of each shard, by shard number.
  std::vector<uint32_t> owners;
  Time deadline;
};

// The host makes the record durable before it begins a later command (lines for the log need not
// wait). It retries a failed write, and answers with RecordDone. The host gives the write up after
// limits.start_seconds, or after some seconds if the record says that the job has failed.
// RecordDone then has an error, and the servers are told nothing that depends on the record.
struct WriteRecord {
  v1::CoordinatorRecord record;
  // False if a restarted coordinator can do without the record, because it learns the contents from
  // other sources. The host writes such a record when it has time, unless it writes a newer record
  // first. If the write fails, the job goes on, and the host need not answer.
  bool awaited = true;
};

// Names the file of a worker's state that must be copied from the folder of an earlier cut into the
// cut of the manifest.
struct AdoptState {
  uint64_t from_clock = 0;
  std::string file;
};

// The host answers with ManifestWritten.
struct WriteManifest {
  v1::CheckpointManifest manifest;
  // The host copies these states before it writes the manifest.
  std::vector<AdoptState> adopt;
};

// The host sends this command to every connected server. For each server that answers within
// `limit`, the host answers with ShutdownDone.
struct ShutdownServers {
  Duration limit;
  v1::JobState outcome = v1::JOB_STARTING;
};

// StepRecord, EvaluationRecord and Event (run/core/records.h) are for the log and metrics.jsonl.
using Command =
    std::variant<ConnectServer, DisconnectServer, ConfigureServer, SetLive, CommitSet, SaveAll,
                 WriteRecord, WriteManifest, ShutdownServers, StepRecord, EvaluationRecord, Event>;

}  // namespace leeway
