// A job in one process whose servers are killed, drained, cut off and joined by others while it
// trains, and whose clocks can be put forward.
#pragma once

#include <atomic>
#include <chrono>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>

#include "absl/strings/str_cat.h"
#include "common/exit_code.h"
#include "common/rpc/channel.h"
#include "leeway/v1/coordinator.grpc.pb.h"
#include "tests/whole/job_rig.h"
#include "tests/whole/wire.h"

namespace leeway::testing {

// Adds to the system's clocks what a test asks for. Thread-safe.
class PutForward {
 public:
  void Add(Duration more) { added_ += more.count(); }
  Time Now() const { return SteadyNow() + Duration(added_); }
  BootTime BootNow() const { return BootClock::now() + Duration(added_); }

 private:
  std::atomic<Duration::rep> added_{0};
};

// Each server has a wire that leads to it, and one on which it reaches server 0. `meanwhile` makes
// the trouble, in Run's thread. A step takes 2 ms, so that the job does not end before.
class TroubleRig : public JobRig {
 public:
  explicit TroubleRig(const v1::TrainingJob& job) : JobRig(job) {
    reached_at = [this](uint32_t index) { return WiresOf(index).in.address(); };
    on_listening = [this](uint32_t index, const std::string& address) {
      WiresOf(index).in.LeadTo(address);
    };
  }

  // Like SIGKILL: connected processes see a reset, and nothing listens there. What the server was
  // told before counts, and nothing that it says while it ends.
  void Kill(uint32_t index) {
    Unplug(index);
    EndServer(servers_[index]);
  }
  // Like SIGTERM: others have what it held before it ends.
  void Drain(uint32_t index) {
    Server& server = servers_[index];
    INFO("server " << index);
    REQUIRE(server.process->Drain(kPatience, &Pause));
    server.thread.join();
    CHECK(server.end.exit_code == kExitTerminated);
    Unplug(index);
    server.process.reset();
  }
  // Starts a new server, or its next life.
  void Start(uint32_t index) { StartServer(index); }
  // Starts its next life, and waits until each block has two holders again.
  void StartAgain(uint32_t index) {
    const int registered = Events("server_registered"), started = Events("job_started");
    Start(index);
    WaitForEvents("server_registered", registered + 1);
    if (index == 0) WaitForEvents("job_started", started + 1);
    Forward();
    WaitFor("two holders of each block", [this] { return Whole(); });
  }
  // Nothing reaches or leaves the server by its wires, until Release.
  void Hold(uint32_t index) {
    WiresOf(index).in.Hold();
    WiresOf(index).out.Hold();
  }
  void Release(uint32_t index) {
    WiresOf(index).in.Release();
    WiresOf(index).out.Release();
  }
  // The rank's next life begins while the previous one is still alive.
  void ReplaceWorker(uint32_t rank) { StartWorker(rank); }

  void Resize(uint32_t servers) {
    v1::ResizeServersRequest request;
    request.set_servers(servers);
    Ask(&v1::Coordinator::Stub::ResizeServers, request);
  }
  void Stop() { Ask(&v1::Coordinator::Stub::StopJob, v1::StopJobRequest()); }
  v1::JobStatus Status() {
    return Ask(&v1::Coordinator::Stub::GetJobStatus, v1::GetJobStatusRequest());
  }

  // Returns the lines of the run's metrics.
  virtual std::string Metrics() const {
    std::ifstream file(folder() + "/metrics.jsonl");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Returns how many of these lines have the event.
  int Events(const std::string& kind) const {
    std::istringstream file(Metrics());
    int found = 0;
    for (std::string line; std::getline(file, line);) found += Is(line, kind);
    return found;
  }
  // Whether every shard and its replica, if it has one, are where they are to be.
  bool Whole() const {
    std::istringstream file(Metrics());
    bool whole = true;
    for (std::string line; std::getline(file, line);) {
      if (Is(line, "server_lost") || Is(line, "placement_changed")) whole = false;
      if (Is(line, "replicas_synced") || Is(line, "resized")) whole = true;
    }
    return whole;
  }
  // Waits until condition(). If that does not come, the failure says `what`.
  template <typename Condition>
  void WaitFor(const std::string& what, Condition condition) {
    const Time end = SteadyNow() + kPatience;
    while (!condition()) {
      Pause(std::chrono::milliseconds(5));
      INFO("waited in vain for " << what << "\n" << Status().DebugString());
      if (SteadyNow() > end) REQUIRE(what.empty());
    }
  }
  void WaitForEvents(const std::string& kind, int count) {
    WaitFor(absl::StrCat(count, " times ", kind), [&] { return Events(kind) >= count; });
  }
  // Waits until all workers together have made this number of further steps.
  void Forward(uint64_t steps = 20) {
    const uint64_t until = steps_ + steps;
    WaitFor("the workers' steps", [&] { return steps_ >= until; });
  }
  PutForward& clock() { return clock_; }

 protected:
  // The additional time of a worker's step.
  void Step() {
    ++steps_;
    Pause(std::chrono::milliseconds(2));
  }
  static bool Pause(Duration pause) {
    poll(nullptr, 0, static_cast<int>(pause / std::chrono::milliseconds(1)));
    return true;
  }

  ServerOptions OptionsOfServer(uint32_t index) override {
    ServerOptions options = JobRig::OptionsOfServer(index);
    options.start_within = kPatience;
    options.now = [this] { return clock_.Now(); };
    options.boot_now = [this] { return clock_.BootNow(); };
    if (index > 0) {
      WiresOf(index).out.LeadTo(WiresOf(0).in.address());
      options.coordinator = WiresOf(index).out.address();
    }
    return options;
  }
  WorkerOptions OptionsOfWorker(uint32_t rank) override {
    WorkerOptions options = JobRig::OptionsOfWorker(rank);
    options.start_within = kPatience;
    options.sleep = [this](Duration) { Step(); };
    return options;
  }

 private:
  static constexpr Duration kPatience = std::chrono::seconds(60);
  struct Wires {
    Wire in, out;
  };

  static bool Is(const std::string& line, const std::string& kind) {
    return line.find(absl::StrCat("\"event\":\"", kind, "\"")) != std::string::npos;
  }

  // May be called from any thread.
  Wires& WiresOf(uint32_t index) {
    MutexLock lock(mutex_);
    auto& wires = wires_[index];
    if (wires == nullptr) wires = std::make_unique<Wires>();
    return *wires;
  }
  void Unplug(uint32_t index) {
    WiresOf(index).in.Cut();
    WiresOf(index).out.Cut();
  }

  template <typename Request, typename Reply>
  Reply Ask(grpc::Status (v1::Coordinator::Stub::*method)(grpc::ClientContext*, const Request&,
                                                          Reply*),
            const Request& request) {
    const auto stub = v1::Coordinator::NewStub(MakeChannel(CoordinatorAddress()));
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    Reply reply;
    const grpc::Status status = ((*stub).*method)(&context, request, &reply);
    INFO(status.error_message());
    CHECK(status.ok());
    return reply;
  }

  Mutex mutex_;
  std::map<uint32_t, std::unique_ptr<Wires>> wires_ GUARDED_BY(mutex_);
  PutForward clock_;
  std::atomic<uint64_t> steps_{0};
};

// The settings of a sync job that has much state to lose, and that does not end by itself.
inline std::vector<std::string> InTrouble(std::vector<std::string> more) {
  std::vector<std::string> sets = {
      "workers={count: 2, emulate: {step_milliseconds: 2}}",
      "checkpoint={every: {clocks: 20}}",
      "limits={lease_seconds: 30, start_seconds: 60}",
      "transport.type=tcp",
      "stop={clocks: 1000000}",
  };
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

// Runs the rig's job, which must have the settings InTrouble(sets), through the trouble, and then
// stops it in order. It must have the bits of a job that ends there undisturbed.
inline void CheckSameBits(TroubleRig& rig, const std::vector<std::string>& sets,
                          const std::function<void(TroubleRig&)>& trouble) {
  rig.meanwhile = [&](const std::string&) {
    rig.Forward();
    trouble(rig);
    rig.Forward();
    rig.Stop();
  };
  const JobResult result = rig.Run();
  for (const auto& server : result.servers) CHECK(server == absl::OkStatus());
  for (const auto& worker : result.workers) {
    INFO(worker.status.ToString());
    CHECK(worker.exit == WorkerExit::kStopped);
  }
  REQUIRE(result.clock > 0);
  std::vector<std::string> whole = InTrouble(sets);
  whole.emplace_back("workers.emulate={}");
  whole.push_back(absl::StrCat("stop={clocks: ", result.clock, "}"));
  JobRig undisturbed(DigitsJob(whole));
  CHECK(MustTrain(undisturbed).sha256 == result.sha256);
}
inline void CheckSameBits(const std::vector<std::string>& sets,
                          const std::function<void(TroubleRig&)>& trouble) {
  TroubleRig rig(DigitsJob(InTrouble(sets)));
  CheckSameBits(rig, sets, trouble);
}

}  // namespace leeway::testing
