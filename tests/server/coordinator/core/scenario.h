// A coordinator core whose clock the test moves, and short names for the messages to it.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "common/files/sha256.h"
#include "common/protocol.h"
#include "server/coordinator/core/coordinator_core.h"

namespace leeway {

// By default there are enough values that each of some servers has a block.
inline v1::ModelSchema TestSchema(uint64_t units = 2000) {
  v1::ModelSchema schema;
  v1::TensorSpec* weight = schema.add_tensors();
  weight->set_name("dense_0/weight");
  weight->add_shape(4);
  weight->add_shape(units);
  v1::TensorSpec* bias = schema.add_tensors();
  bias->set_name("dense_0/bias");
  bias->add_shape(units);
  bias->set_offset(4 * units);
  schema.set_trained(5 * units);
  schema.set_total(5 * units);
  return schema;
}

struct JobShape {
  uint32_t workers = 2;
  uint32_t servers = 2;
  v1::ConsistencyMode mode = v1::CONSISTENCY_MODE_SYNC;
  uint64_t clocks = 100;
  // 0: only the last cut.
  uint64_t cut_every = 0;
  // Elastic exchange: workers keep a state.
  bool elastic = false;
};

inline v1::TrainingJob TestJob(const JobShape& shape) {
  v1::TrainingJob job;
  job.mutable_metadata()->set_name("test");
  job.mutable_workers()->set_count(shape.workers);
  job.mutable_servers()->set_count(shape.servers);
  job.mutable_consistency()->set_mode(shape.mode);
  job.mutable_stop()->set_clocks(shape.clocks);
  if (shape.cut_every > 0) {
    job.mutable_checkpoint()->mutable_every()->set_clocks(shape.cut_every);
  }
  job.mutable_exchange()->mutable_gradient();
  if (shape.elastic) {
    job.mutable_exchange()->mutable_elastic()->set_alpha(0.5);
    job.mutable_exchange()->mutable_elastic()->set_every(1);
    job.mutable_exchange()->mutable_elastic()->mutable_optimizer()->mutable_sgd();
  }
  return job;
}

inline constexpr uint64_t kJob = 77;

inline CoordinatorOptions TestOptions(const JobShape& shape) {
  CoordinatorOptions options;
  options.job = TestJob(shape);
  options.job_id = kJob;
  options.job_sha256 = "aa";
  options.run_dir = "/run";
  return options;
}

inline v1::SavedShard TestFile(const std::string& name) {
  v1::SavedShard file;
  file.set_file(name);
  file.set_bytes(8);
  file.set_sha256(HexSha256(name));
  return file;
}

// The registration of a worker process.
inline v1::RegisterWorkerRequest WorkerRequest(std::optional<uint32_t> rank, uint32_t pid) {
  v1::RegisterWorkerRequest request;
  *request.mutable_build() = ThisBuild();
  if (rank) request.set_rank(*rank);
  request.set_host("host");
  request.set_pid(pid);
  request.set_nonce(pid);
  *request.mutable_schema() = TestSchema();
  request.set_steps_per_epoch(10);
  return request;
}

class Scenario {
 public:
  explicit Scenario(const JobShape& shape) : Scenario(TestOptions(shape)) {}
  explicit Scenario(CoordinatorOptions options)
      : mode(options.job.consistency().mode()),
        workers(options.job.workers().count()),
        servers(options.job.servers().count()),
        core(std::move(options), now) {}

  // Lets time pass; the named ranks go on sending heartbeats, and so do all servers.
  void Pass(double seconds, const std::vector<uint32_t>& ranks = {}, bool server_beats = true) {
    for (double left = seconds; left > 0; left -= 0.25) {
      now += FromSeconds(0.25);
      for (uint32_t i = 0; server_beats && i < servers; ++i) ServerBeat(i).IgnoreError();
      for (const uint32_t rank : ranks) Beat(rank).IgnoreError();
      core.Tick(now);
    }
  }

  // Carries commands out as a service with a working disk: records that are not of the job's end
  // are durable at once.
  void Carry() {
    for (auto fresh = core.TakeCommands(); !fresh.empty(); fresh = core.TakeCommands()) {
      for (Command& command : fresh) {
        const auto* write = std::get_if<WriteRecord>(&command);
        if (write != nullptr && keeps_records && write->record.outcome() == v1::JOB_STARTING) {
          core.Answered(RecordDone{write->record, absl::OkStatus()}, now);
        }
        commands.push_back(std::move(command));
      }
    }
  }

  absl::Status ServerBeat(uint32_t index) {
    Carry();
    v1::ServerHeartbeatRequest request;
    request.set_job(kJob);
    request.set_index(index);
    request.set_nonce(nonces.empty() ? 1 : nonces[index]);
    return core.ServerHeartbeat(request, now).status();
  }

  // A process registers, and is heard at once.
  absl::StatusOr<v1::RegisterServerReply> Server(uint32_t index, uint64_t nonce = 1) {
    nonces.resize(servers, 1);
    if (index < servers) nonces[index] = nonce;
    auto reply = Registration(index, nonce);
    if (!reply.ok()) return reply;
    if (absl::Status heard = Beating(index, nonce); !heard.ok()) return heard;
    return reply;
  }
  absl::StatusOr<v1::RegisterServerReply> Registration(uint32_t index, uint64_t nonce) {
    v1::RegisterServerRequest request;
    *request.mutable_build() = ThisBuild();
    request.set_index(index);
    request.set_address("server" + std::to_string(index) + ":1");
    request.set_nonce(nonce);
    return core.RegisterServer(request, now);
  }
  absl::Status Beating(uint32_t index, uint64_t nonce) {
    v1::ServerHeartbeatRequest beat;
    beat.set_job(kJob);
    beat.set_index(index);
    beat.set_nonce(nonce);
    return core.ServerHeartbeat(beat, now).status();
  }

  absl::StatusOr<v1::RegisterWorkerReply> Worker(std::optional<uint32_t> rank, uint32_t pid) {
    Carry();
    return Remember(core.RegisterWorker(WorkerRequest(rank, pid), now));
  }
  absl::StatusOr<v1::RegisterWorkerReply> Remember(absl::StatusOr<v1::RegisterWorkerReply> reply) {
    if (reply.ok()) {
      incarnations.resize(std::max<size_t>(incarnations.size(), reply->rank() + 1));
      incarnations[reply->rank()] = reply->incarnation();
      generation = reply->generation();
    }
    return reply;
  }

  // Servers and workers register (pids 100, 101, ...), and servers make their blocks.
  void Start() {
    for (uint32_t i = 0; i < servers; ++i) Server(i).IgnoreError();
    for (uint32_t i = 0; i < workers; ++i) Worker(i, 100 + i).IgnoreError();
    for (const ConfigureServer& command : Take<ConfigureServer>()) {
      core.Answered(ConfigureDone{command.server, command.round, absl::OkStatus()}, now);
    }
    for (uint32_t i = 0; i < workers; ++i) Worker(i, 100 + i).IgnoreError();
  }

  absl::StatusOr<v1::HeartbeatReply> Beat(uint32_t rank, uint64_t clock = 0,
                                          uint64_t peers_epoch = 0) {
    Carry();
    v1::HeartbeatRequest request;
    request.set_job(kJob);
    request.set_rank(rank);
    request.set_incarnation(incarnations.at(rank));
    request.set_clock(clock);
    request.set_generation(generation);
    request.set_peers_epoch(peers_epoch);
    return core.Heartbeat(request, now);
  }

  absl::StatusOr<uint64_t> StopAt(uint32_t rank, uint64_t clock) {
    v1::StopAtRequest request;
    request.set_job(kJob);
    request.set_rank(rank);
    request.set_incarnation(incarnations.at(rank));
    request.set_clock(clock);
    request.set_generation(generation);
    const auto reply = core.StopAt(request, now);
    if (!reply.ok()) return reply.status();
    return reply->stop_at();
  }

  absl::Status Leave(uint32_t rank, uint64_t clock, v1::LeaveReason reason,
                     const std::string& message = "") {
    v1::LeaveRequest request;
    request.set_job(kJob);
    request.set_rank(rank);
    request.set_incarnation(incarnations.at(rank));
    request.set_clock(clock);
    request.set_reason(reason);
    request.set_message(message);
    request.set_generation(generation);
    return core.Leave(request, now).status();
  }

  absl::Status Shard(uint32_t server, uint64_t clock, const std::string& error = "",
                     const std::string& name = "") {
    v1::ShardSavedRequest request;
    request.set_job(kJob);
    request.set_index(server);
    request.set_clock(clock);
    request.set_error(error);
    request.set_generation(generation);
    if (error.empty()) {
      *request.mutable_shard() = TestFile(name.empty() ? "shard-" + std::to_string(server) : name);
    }
    return core.ShardSaved(request, now);
  }

  absl::Status State(uint32_t rank, uint64_t clock, const std::string& name = "") {
    return core.WorkerStateSaved({kJob, generation, rank, incarnations.at(rank), clock},
                                 TestFile(name.empty() ? "worker-" + std::to_string(rank) : name),
                                 now);
  }

  // Makes every record so far durable.
  void Seal() {
    for (const WriteRecord& write : Take<WriteRecord>()) {
      core.Answered(RecordDone{write.record, absl::OkStatus()}, now);
    }
  }

  // Answers SaveAll and WriteManifest, and shuts every server down.
  void FinishSaving() {
    for (const SaveAll& save : Take<SaveAll>()) {
      for (uint32_t i = 0; i < servers; ++i) {
        core.Answered(SaveDone{i, save.round, save.clock, TestFile("shard-" + std::to_string(i))},
                      now);
      }
    }
    for (const WriteManifest& write : Take<WriteManifest>()) {
      core.Answered(ManifestWritten{write.manifest.clock(), absl::OkStatus()}, now);
    }
    for (uint32_t i = 0; i < servers; ++i) core.Answered(ShutdownDone{i}, now);
  }

  // Returns the commands of one kind since commands of that kind were last taken.
  template <typename Kind>
  std::vector<Kind> Take() {
    Carry();
    std::vector<Kind> taken;
    std::vector<Command> rest;
    for (Command& command : commands) {
      if (Kind* kind = std::get_if<Kind>(&command)) {
        taken.push_back(std::move(*kind));
      } else {
        rest.push_back(std::move(command));
      }
    }
    commands = std::move(rest);
    return taken;
  }
  std::vector<std::string> EventNames() {
    std::vector<std::string> names;
    for (const Event& event : Take<Event>()) names.push_back(event.name);
    return names;
  }

  Time now = Time() + std::chrono::hours(1);
  v1::ConsistencyMode mode;
  uint32_t workers;
  uint32_t servers;
  // False: the test makes records durable by hand.
  bool keeps_records = true;
  // The generation of the last registration.
  uint64_t generation = 0;
  // By server: the nonce of its process.
  std::vector<uint64_t> nonces;
  // By rank: the incarnation that was answered last.
  std::vector<uint64_t> incarnations;
  std::vector<Command> commands;
  CoordinatorCore core;
};

}  // namespace leeway
