// What the coordinator's core wants done, in order. The service does it; a test looks at it.
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

// Where a server's ShardControl is; commands to it go there from now on, and none of before. That
// the process there is gone is answered by ServerGone with its nonce.
struct ConnectServer {
  uint32_t server = 0;
  std::string address;
  uint64_t nonce = 0;
};

// Lost: what it has not heard it need not hear, for what it holds is made anew if it comes back,
// and until it is connected again nothing is kept for it.
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

// To every server, in order with the others, until each has heard it.
struct SetLive {
  uint32_t rank = 0;
  bool live = false;
  bool operator==(const SetLive&) const = default;
};

// To every server, in order with the others, until each has heard it.
struct CommitSet {
  uint64_t generation = 0;
  uint64_t clock = 0;
  // Rising.
  std::vector<uint32_t> ranks;
  bool operator==(const CommitSet&) const = default;
};

// Of every shard, to the server that owns it; each answers by SaveDone with the same round. Asked
// again when shards change hands meanwhile: then only the answers to the last one count, for it is
// what it says that lies in the files.
struct SaveAll {
  uint64_t round = 0;
  uint64_t generation = 0;
  uint64_t clock = 0;
  // By shard.
  std::vector<uint32_t> owners;
  Time deadline;
};

// Durable before any command after it is begun, tried again and again. Answered by RecordDone: with
// an error, once there is no hope (limits.start_seconds; seconds, where it says that the job has
// failed), and then servers are told nothing of what was to follow. Lines for the log wait for
// none.
struct WriteRecord {
  v1::CoordinatorRecord record;
  // False: nothing follows from it but what a coordinator started again finds out by itself, or is
  // told anew. It is written when there is time, unless a newer record is; there is no hope ends
  // nothing, and it may not be answered.
  bool awaited = true;
};

// A worker's state that lies in the folder of another cut than the one it becomes part of.
struct AdoptState {
  uint64_t from_clock = 0;
  std::string file;
};

// Answered by ManifestWritten.
struct WriteManifest {
  v1::CheckpointManifest manifest;
  // Done first.
  std::vector<AdoptState> adopt;
};

// To every connected server; each answers by ShutdownDone, within `limit` or not at all.
struct ShutdownServers {
  Duration limit;
  v1::JobState outcome = v1::JOB_STARTING;
};

// The rest is for the log and metrics.jsonl.
struct StepRecord {
  uint32_t rank = 0;
  v1::StepMetrics metrics;
};
struct EvaluationRecord {
  uint32_t rank = 0;
  v1::EvaluationMetrics metrics;
};
// What a clock is in this start of the job; a later one may have other workers and exchanges.
struct ClockShape {
  uint32_t workers = 0;
  uint64_t steps_per_clock = 0;
  bool sync = false;
};
struct Event {
  // job_started, worker_registered, worker_lost, ...: metrics_log.h lists them.
  std::string name = {};
  std::optional<uint32_t> rank = {};
  std::optional<uint32_t> server = {};
  std::optional<uint64_t> incarnation = {};
  std::optional<uint64_t> clock = {};
  // finished, stopped, failed.
  std::string state = {};
  std::string message = {};
  // Of a job_started.
  std::optional<ClockShape> shape = {};
};

using Command =
    std::variant<ConnectServer, DisconnectServer, ConfigureServer, SetLive, CommitSet, SaveAll,
                 WriteRecord, WriteManifest, ShutdownServers, StepRecord, EvaluationRecord, Event>;

}  // namespace leeway
