// Whichever call the way answers in a server's place, and with whichever code, the job comes to the
// same result.
#include "tests/whole/way.h"

#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "leeway/v1/coordinator.grpc.pb.h"
#include "leeway/v1/parameter_server.pb.h"
#include "tests/whole/job_rig.h"

namespace leeway::way {
namespace {

using testing::DigitsJob;
using testing::JobResult;
using testing::JobRig;
using testing::Way;
using testing::WayFault;

// The codes that the first tier tries, out of 16: one for each way in which a status could be
// mistaken for a server's word. One as a network reports it; one that says when to come again; one
// as if a newer life had replaced this one, at which a worker leaves without a word; one as if the
// secret were wrong. The nightly test tries all codes.
const std::vector<int> kHardest = {grpc::UNAVAILABLE, grpc::RESOURCE_EXHAUSTED, grpc::ABORTED,
                                   grpc::UNAUTHENTICATED};

std::vector<int> AllCodes() {
  std::vector<int> codes(16);
  std::iota(codes.begin(), codes.end(), 1);
  return codes;
}

// Returns the unary methods of every service that our programs serve, by their names on the wire.
std::set<std::string> Methods() {
  std::set<std::string> methods;
  for (const auto* file :
       {v1::HeartbeatRequest::descriptor()->file(), v1::AttachRequest::descriptor()->file()}) {
    for (int s = 0; s < file->service_count(); ++s) {
      const auto& service = *file->service(s);
      for (int m = 0; m < service.method_count(); ++m) {
        const auto& method = *service.method(m);
        if (method.client_streaming() && method.server_streaming()) continue;
        methods.insert("/" + service.full_name() + "/" + method.name());
      }
    }
  }
  return methods;
}

// Why no job of these tests calls a method. A new method that jobs do call need not be listed here.
const std::map<std::string, std::string>& NotCalled() {
  static const std::map<std::string, std::string> reasons = {
      {"/leeway.v1.Coordinator/GetJobStatus", "a person asks"},
      {"/leeway.v1.Coordinator/DrainServer", "a server with SIGTERM asks: chaos/drain.py"},
      {"/leeway.v1.Coordinator/ResizeServers", "a person asks"},
      {"/leeway.v1.Coordinator/StopJob", "a person asks"},
      {"/leeway.v1.Coordinator/ProbeLink", "not on one host: link_probe_test.cc"},
      {"/leeway.v1.ParameterServer/Initialize", "our workers use the stream"},
      {"/leeway.v1.ParameterServer/Push", "our workers use the stream"},
      {"/leeway.v1.ParameterServer/Pull", "our workers use the stream"},
      {"/leeway.v1.ParameterServer/PushPull", "our workers use the stream"},
  };
  return reasons;
}

// The ways to all servers of a job. They answer the first call of each method with `code`, and the
// second in the same way after it was carried out.
class Trouble {
 public:
  Trouble(grpc::StatusCode code, uint32_t servers) : code_(code) {
    for (uint32_t i = 0; i < servers; ++i) {
      ways_.push_back(std::make_unique<Way>(
          code, [this](const std::string& method) { return Decide(method); }));
    }
  }

  void Into(JobRig& rig) {
    rig.reached_at = [this](uint32_t index) { return ways_[index]->address(); };
    rig.on_listening = [this](uint32_t index, const std::string& address) {
      ways_[index]->LeadTo(address);
    };
  }
  // The methods that were called often enough.
  std::set<std::string> done() const {
    MutexLock lock(mutex_);
    std::set<std::string> done;
    for (const auto& [method, calls] : calls_) {
      if (calls >= 2) done.insert(method);
    }
    return done;
  }

 private:
  WayFault Decide(const std::string& method) {
    if (!methods_.contains(method)) return WayFault::kNone;
    MutexLock lock(mutex_);
    const int call = calls_[method]++;
    return call == 0 ? WayFault::kBefore : call == 1 ? WayFault::kAfter : WayFault::kNone;
  }

  const grpc::StatusCode code_;
  const std::set<std::string> methods_ = Methods();
  mutable Mutex mutex_;
  std::map<std::string, int> calls_ GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Way>> ways_;
};

void Add(const std::set<std::string>& some, std::map<std::string, int>& all) {
  for (const std::string& method : some) ++all[method];
}

JobResult Clean(const v1::TrainingJob& job) {
  JobRig rig(job);
  return testing::MustTrain(rig);
}

// Checks that with each of the codes the job has the weights that it has on a good way. Returns
// with how many codes each method was answered.
std::map<std::string, int> TrainThrough(const v1::TrainingJob& job, const std::vector<int>& codes) {
  std::map<std::string, int> disturbed;
  const std::string clean = Clean(job).sha256;
  for (const int code : codes) {
    INFO("code " << code);
    Trouble trouble(static_cast<grpc::StatusCode>(code), job.servers().count());
    JobRig rig(job);
    trouble.Into(rig);
    CHECK(testing::MustTrain(rig).sha256 == clean);
    Add(trouble.done(), disturbed);
  }
  return disturbed;
}

std::vector<std::string> Small(std::vector<std::string> more) {
  std::vector<std::string> sets = {"transport.type=tcp", "servers.count=2", "workers.count=2",
                                   "stop.clocks=12"};
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

v1::TrainingJob Elastic(int clocks) {
  return DigitsJob(
      Small({"exchange={type: elastic, alpha: 0.3, every: 2}", "checkpoint={every: {clocks: 4}}",
             "stop.clocks=" + std::to_string(clocks)}));
}

// Trains a job that is stopped while it trains, on a good way or through trouble. Its clock is
// compared, too.
JobResult TrainUntilStopped(Trouble* trouble) {
  JobRig rig(DigitsJob(Small({"stop.clocks=1000000"})));
  if (trouble != nullptr) trouble->Into(rig);
  rig.meanwhile = [](const std::string& coordinator) {
    const auto stub = v1::Coordinator::NewStub(MakeChannel(coordinator));
    for (bool begun = false; !begun; std::this_thread::yield()) {
      grpc::ClientContext context;
      v1::JobStatus status;
      if (!stub->GetJobStatus(&context, {}, &status).ok()) continue;
      begun = status.workers_size() > 0 && status.workers(0).clock() > 2;
    }
    grpc::ClientContext context;
    v1::StopJobReply reply;
    CHECK(stub->StopJob(&context, {}, &reply).ok());
  };
  JobResult result = rig.Run();
  for (const auto& server : result.servers) CHECK(server.ok());
  for (const auto& worker : result.workers) CHECK(worker.exit == WorkerExit::kStopped);
  REQUIRE_FALSE(result.sha256.empty());
  return result;
}

// Runs a job that begins with the states that workers kept, through trouble.
void ResumeThrough(const std::vector<int>& codes, std::map<std::string, int>& disturbed) {
  const std::string clean = Clean(Elastic(12)).sha256;
  for (const int code : codes) {
    INFO("code " << code);
    JobRig before(Elastic(8));
    testing::MustTrain(before);
    Trouble trouble(static_cast<grpc::StatusCode>(code), 2);
    JobRig rig(Elastic(12));
    rig.Resume(before);
    trouble.Into(rig);
    CHECK(testing::MustTrain(rig).sha256 == clean);
    Add(trouble.done(), disturbed);
  }
}

// Workers ask at which clock to stop.
void StopThrough(const std::vector<int>& codes, std::map<std::string, int>& disturbed) {
  for (const int code : codes) {
    INFO("code " << code);
    Trouble trouble(static_cast<grpc::StatusCode>(code), 2);
    const JobResult stopped = TrainUntilStopped(&trouble);
    const auto job = DigitsJob(Small({"stop.clocks=" + std::to_string(stopped.clock)}));
    CHECK(stopped.sha256 == Clean(job).sha256);
    Add(trouble.done(), disturbed);
  }
}

void AnswerEachCallWith(const std::vector<int>& codes) {
  std::map<std::string, int> disturbed;
  const auto most = [&disturbed](const std::map<std::string, int>& answered) {
    for (const auto& [method, count] : answered) {
      disturbed[method] = std::max(disturbed[method], count);
    }
  };
  // Contributions are reported, and the coordinator says which of them count.
  most(TrainThrough(
      DigitsJob(Small({"workers.on_worker_loss=continue", "checkpoint={every: {clocks: 4}}"})),
      codes));
  // The servers are told of a worker that leaves. There is one worker, because the order of several
  // is random.
  most(TrainThrough(
      DigitsJob(Small({"workers.count=1", "consistency.mode=async", "data.assignment=leased"})),
      codes));
  // Workers keep a state, which is saved.
  most(TrainThrough(Elastic(8), codes));
  std::map<std::string, int> loaded;
  ResumeThrough(codes, loaded);
  StopThrough(codes, loaded);
  most(loaded);
  for (const std::string& method : Methods()) {
    INFO(method);
    if (!NotCalled().contains(method)) CHECK(disturbed[method] >= static_cast<int>(codes.size()));
  }
}

TEST_CASE(
    "each call of a job is answered once with the hardest statuses on the way: the same bits") {
  AnswerEachCallWith(kHardest);
}

TEST_CASE("each call of a job is answered once with each status on the way: the same bits",
          "[.nightly]") {
  AnswerEachCallWith(AllCodes());
}

}  // namespace
}  // namespace leeway::way
