// Whatever the network repeats or loses, each contribution counts once.
#include "tests/client/fault_transport.h"
#include "tests/whole/job_rig.h"

namespace leeway::faults {
namespace {

using testing::DigitsJob;
using testing::Faults;
using testing::JobResult;
using testing::JobRig;
using testing::MustTrain;
using testing::WithFaults;

JobResult Train(const v1::TrainingJob& job, const Faults* faults = nullptr) {
  JobRig rig(job);
  if (faults != nullptr) rig.transport = WithFaults(*faults);
  return MustTrain(rig);
}

TEST_CASE(
    "sync: every request doubled and every 10th reply lost, the final weights are the same bits") {
  const v1::TrainingJob job = DigitsJob();
  const std::string clean = Train(job).sha256;
  const Faults faults{.duplicate = true, .drop_reply_every = 10};
  CHECK(Train(job, &faults).sha256 == clean);
}

TEST_CASE("sync: every 7th request lost as well, the final weights are the same bits") {
  const v1::TrainingJob job = DigitsJob({"update={type: adam, learning_rate: 0.01}"});
  const std::string clean = Train(job).sha256;
  const Faults faults{.duplicate = true, .drop_reply_every = 10, .drop_request_every = 7};
  CHECK(Train(job, &faults).sha256 == clean);
}

TEST_CASE("sync: the elastic centre too, and the delta exchange") {
  const Faults faults{.duplicate = true, .drop_reply_every = 10};
  for (const char* exchange :
       {"exchange={type: elastic, alpha: 0.3, every: 2}",
        "exchange={type: delta, local_steps: 2, optimizer: {type: sgd, learning_rate: 0.05}}"}) {
    const v1::TrainingJob job = DigitsJob({exchange, "stop.clocks=15"});
    CHECK(Train(job, &faults).sha256 == Train(job).sha256);
  }
}

TEST_CASE("sync: whatever carries the blocks and however they are cut, the same bits") {
  const std::string shared = Train(DigitsJob({"stop.clocks=20"})).sha256;
  for (const std::vector<std::string>& carried : std::vector<std::vector<std::string>>{
           {"transport={type: shm, channels: 1}"},
           {"transport={type: unix, channels: 3}"},
           {"transport={type: tcp, channels: 1}"},
           {"transport={type: tcp, channels: 4}", "servers={count: 3, block_bytes: 300}"},
           {"transport.type=shm", "servers={count: 1, block_bytes: 4096}"}}) {
    INFO(carried[0]);
    std::vector<std::string> sets = carried;
    sets.push_back("stop.clocks=20");
    CHECK(Train(DigitsJob(sets)).sha256 == shared);
  }
}

TEST_CASE("sync: with compression both ways, too") {
  const Faults faults{.duplicate = true, .drop_reply_every = 10, .drop_request_every = 7};
  for (const char* compression :
       {"compression={contributions: {type: int8}, weights: {type: int8}}",
        "compression={contributions: {type: top_k, share: 0.05}, weights: {type: top_k, share: "
        "0.1}}",
        "compression={contributions: {type: sign}, weights: {type: bf16}}"}) {
    INFO(compression);
    const v1::TrainingJob job = DigitsJob({compression, "stop.clocks=20"});
    const std::string clean = Train(job).sha256;
    CHECK(Train(job, &faults).sha256 == clean);
    CHECK(Train(DigitsJob({compression, "stop.clocks=20", "servers.count=1", "transport.type=tcp"}))
              .sha256 == clean);
    CHECK(Train(DigitsJob({"stop.clocks=20"})).sha256 != clean);
  }
}

TEST_CASE(
    "sync, where a lost worker is not waited for: nobody is lost, the same bits, under faults") {
  const Faults faults{.duplicate = true, .drop_reply_every = 10, .drop_request_every = 7};
  const std::string waiting = Train(DigitsJob({"stop.clocks=20"})).sha256;
  const std::vector<std::string> continuing = {"workers.on_worker_loss=continue", "stop.clocks=20"};
  CHECK(Train(DigitsJob(continuing)).sha256 == waiting);
  CHECK(Train(DigitsJob(continuing), &faults).sha256 == waiting);
}

TEST_CASE("sync with a backup worker: a slow worker and faults, and everybody ends at the end") {
  const Faults faults{.duplicate = true, .drop_reply_every = 10, .drop_request_every = 7};
  for (const char* compression :
       {"compression={}",
        "compression={contributions: {type: top_k, share: 0.1}, weights: {type: top_k, share: "
        "0.1}}"}) {
    INFO(compression);
    const v1::TrainingJob job =
        DigitsJob({"consistency={mode: sync, backup_workers: 1}", compression, "stop.clocks=40",
                   "workers.emulate={step_milliseconds: 2, slow: [{ranks: [1], factor: 4}]}"});
    CHECK_FALSE(Train(job).weights.empty());
    for (float value : Train(job, &faults).weights) CHECK(std::abs(value) < 100.0f);
  }
}

TEST_CASE("bounded and async: the job completes under faults, and counts each contribution once") {
  const Faults faults{.duplicate = true, .drop_reply_every = 10, .drop_request_every = 7};
  for (const char* mode : {"consistency={mode: bounded, staleness: 2}", "consistency.mode=async"}) {
    const JobResult result =
        Train(DigitsJob({mode, "update={type: sgd, learning_rate: 0.02}"}), &faults);
    for (float value : result.weights) CHECK(std::abs(value) < 100.0f);
  }
}

TEST_CASE("a server without blocks serves, and takes no part in checkpoints") {
  const v1::TrainingJob job = DigitsJob({"model.layers=[{dense: {units: 10, bias: false}}]",
                                         "servers={count: 3, block_bytes: 2048}",
                                         "checkpoint={every: {clocks: 10}}", "stop.clocks=20"});
  CHECK(Train(job).weights.size() == 640);
}

}  // namespace
}  // namespace leeway::faults
