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

// Sets the address of the server's ShardControl. Later commands for the server go to that address,
// and earlier commands for it are dropped. If the process at that address ends, the host reports
// ServerGone with this nonce.
struct ConnectServer {
  uint32_t server = 0;
  std::string address;
  uint64_t nonce = 0;
};

// The server is lost. Commands for it are dropped until it is connected again, because its state is
// made anew when it comes back.
struct DisconnectServer {
  uint32_t server = 0;
};

// Answered by ConfigureDone with the same round.
struct ConfigureServer {
  uint32_t server = 0;
  uint64_t round = 0;
  v1::ConfigureRequest request;
  Time deadline;
};

// Goes to every server, in order with the other commands, until each has heard it.
struct SetLive {
  uint32_t rank = 0;
  bool live = false;
  bool operator==(const SetLive&) const = default;
};

// Goes to every server, in order with the other commands, until each has heard it.
struct CommitSet {
  uint64_t generation = 0;
  uint64_t clock = 0;
  // In ascending order.
  std::vector<uint32_t> ranks;
  bool operator==(const CommitSet&) const = default;
};

// Asks the owner of every shard for its part of the last cut. Each owner answers by SaveDone with
// the same round. The core asks again if shards change hands meanwhile. Then only the answers to
// the latest command count, because they describe what is in the files.
struct SaveAll {
  uint64_t round = 0;
  uint64_t generation = 0;
  uint64_t clock = 0;
  // By shard number.
  std::vector<uint32_t> owners;
  Time deadline;
};

// The record is durable before any later command begins, except lines for the log. A failed write
// is retried. RecordDone answers. It has an error if the record was given up: after
// limits.start_seconds, or after some seconds if it says that the job has failed. Then the servers
// are not told anything that depends on the record.
struct WriteRecord {
  v1::CoordinatorRecord record;
  // False if a restarted coordinator can do without the record, because it finds out the facts in
  // it by itself or is told them anew. Such a record is written when there is time, unless a newer
  // record is written first. If it cannot be written, the job does not end, and there may be no
  // answer.
  bool awaited = true;
};

// Names the file of a worker's state that must be copied from the folder of an earlier cut into the
// cut of the manifest.
struct AdoptState {
  uint64_t from_clock = 0;
  std::string file;
};

// Answered by ManifestWritten.
struct WriteManifest {
  v1::CheckpointManifest manifest;
  // These states are copied before the manifest is written.
  std::vector<AdoptState> adopt;
};

// Goes to every connected server. Each answers by ShutdownDone within `limit`, or not at all.
struct ShutdownServers {
  Duration limit;
  v1::JobState outcome = v1::JOB_STARTING;
};

// StepRecord, EvaluationRecord and Event (run/core/records.h) are for the log and metrics.jsonl.
using Command =
    std::variant<ConnectServer, DisconnectServer, ConfigureServer, SetLive, CommitSet, SaveAll,
                 WriteRecord, WriteManifest, ShutdownServers, StepRecord, EvaluationRecord, Event>;

}  // namespace leeway
