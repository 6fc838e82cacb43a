// What the coordinator's core wants done. The host carries out the commands in order; a test looks
// at them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/clock.h"
#include "leeway/v1/checkpoint.pb.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// Names the server's ShardControl. Later commands for the server go there, and earlier ones are
// dropped. If the process there ends, ServerGone with its nonce reports it.
struct ConnectServer {
  uint32_t server = 0;
  std::string address;
  uint64_t nonce = 0;
};

// The server is lost. Pending commands for it are dropped, and no commands are kept for it until it
// is connected again: its state is made anew when it comes back.
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

// Asks the owner of every shard for its part; each answers by SaveDone with the same round. Asked
// again when shards change hands meanwhile. Then only the answers to the latest question count,
// because they describe what is in the files.
struct SaveAll {
  uint64_t round = 0;
  uint64_t generation = 0;
  uint64_t clock = 0;
  // By shard number.
  std::vector<uint32_t> owners;
  Time deadline;
};

// Durable before any command after it is begun, tried again and again. Answered by RecordDone: with
// an error, once there is no hope (limits.start_seconds; seconds, where it says that the job has
// failed), and then servers are told nothing of what was to follow. Lines for the log wait for
// none.
struct WriteRecord {
  v1::CoordinatorRecord record;
  // False if nothing depends on the record, except what a restarted coordinator finds out by itself
  // or is told anew. Such a record is written when there is time, unless a newer one is written
  // first. If it is given up, the job does not end, and there may be no answer.
  bool awaited = true;
};

// The file of a worker's state that is in the folder of another cut than the one it becomes a part
// of.
struct AdoptState {
  uint64_t from_clock = 0;
  std::string file;
};

// Answered by ManifestWritten.
struct WriteManifest {
  v1::CheckpointManifest manifest;
  // These are adopted before the manifest is written.
  std::vector<AdoptState> adopt;
};

// Goes to every connected server. Each answers by ShutdownDone within `limit`, or not at all.
struct ShutdownServers {
  Duration limit;
  v1::JobState outcome = v1::JOB_STARTING;
};

// The remaining commands are for the log and metrics.jsonl.
struct StepRecord {
  uint32_t rank = 0;
  v1::StepMetrics metrics;
};
struct EvaluationRecord {
  uint32_t rank = 0;
  v1::EvaluationMetrics metrics;
};
// The shape of a clock in this start of the job. A later start may have other workers and
// exchanges.
struct ClockShape {
  uint32_t workers = 0;
  uint64_t steps_per_clock = 0;
  bool sync = false;
};
struct Event {
  // The kind: job_started, worker_registered, worker_lost and so on; metrics_log.h lists them.
  std::string name = {};
  std::optional<uint32_t> rank = {};
  std::optional<uint32_t> server = {};
  std::optional<uint64_t> incarnation = {};
  std::optional<uint64_t> clock = {};
  // Finished, stopped or failed.
  std::string state = {};
  std::string message = {};
  // Only in job_started.
  std::optional<ClockShape> shape = {};
};

using Command =
    std::variant<ConnectServer, DisconnectServer, ConfigureServer, SetLive, CommitSet, SaveAll,
                 WriteRecord, WriteManifest, ShutdownServers, StepRecord, EvaluationRecord, Event>;

}  // namespace leeway
