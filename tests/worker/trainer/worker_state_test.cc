// A worker's own state, which it saves at cuts and takes up again.
#include <map>
#include <string>

#include "tests/catch.h"
#include "tests/client/fake_servers.h"
#include "tests/worker/trainer/worker_rig.h"
#include "worker/worker.h"

namespace leeway::worker_state {
namespace {

using testing::FakeRequest;
using testing::kTotal;
using testing::Rig;

TEST_CASE("What a worker keeps is handed in at every cut and at the end, and taken up again") {
  const std::string delta =
      "exchange={type: delta, local_steps: 1, optimizer: {type: sgd, learning_rate: 0.1, "
      "momentum: 0.9}}";
  Rig rig({delta, "stop.clocks=5"});
  rig.coordinator.registration.set_save_state(true);
  rig.coordinator.registration.set_cut_every(2);
  REQUIRE(rig.Run().exit == WorkerExit::kDone);
  const auto saved = rig.coordinator.saved();
  REQUIRE(saved.size() == 3);
  CHECK(saved.count(2) == 1);
  CHECK(saved.count(4) == 1);
  CHECK(saved.count(5) == 1);

  // A worker that resumes from clock 4 with the weights of that clock ends its last clock in the
  // same way.
  const auto weights_at = [&](uint64_t clock) {
    std::vector<float> weights(kTotal);
    for (const FakeRequest& request : rig.model->requests()) {
      const ElementRange range = rig.model->layout().Range(request.header.block());
      for (size_t i = 0; i < request.values.size(); ++i) {
        if (request.method == "Initialize") weights[range.offset + i] = request.values[i];
        if (request.method == "PushPull" && request.header.clock() < clock) {
          weights[range.offset + i] -= request.values[i];
        }
      }
    }
    return weights;
  };
  Rig resumed({delta, "stop.clocks=5"});
  resumed.coordinator.registration.set_save_state(true);
  resumed.coordinator.registration.set_resumed(true);
  resumed.coordinator.state.emplace();
  resumed.coordinator.state->set_clock(4);
  resumed.coordinator.state->set_data(saved.at(4));
  resumed.model->needs_initialize = false;
  resumed.model->attach_clock = 4;
  resumed.model->set_weights(weights_at(4));
  REQUIRE(resumed.Run().exit == WorkerExit::kDone);
  CHECK(resumed.model->weights() == rig.model->weights());
  CHECK(resumed.coordinator.saved().at(5) == saved.at(5));
}

TEST_CASE(
    "A life that begins where all stop hands in that it keeps nothing, and so it is resumed") {
  const std::vector<std::string> elastic = {"exchange={type: elastic, alpha: 0.5, every: 1}"};
  Rig stopped(elastic);
  stopped.coordinator.registration.set_save_state(true);
  stopped.coordinator.registration.set_stop_at(4);
  stopped.model->needs_initialize = false;
  stopped.model->attach_clock = 4;
  REQUIRE(stopped.Run().exit == WorkerExit::kStopped);
  CHECK(stopped.Sent("Pull") == 0);
  REQUIRE(stopped.coordinator.leaves().size() == 1);
  CHECK(stopped.coordinator.leaves()[0].reason() == v1::LEAVE_STOPPED);
  CHECK(stopped.coordinator.leaves()[0].clock() == 4);
  CHECK(stopped.coordinator.saved() == std::map<uint64_t, std::string>{{4, ""}});

  const auto run_on = [&](bool with_state) {
    auto resumed = std::make_unique<Rig>(elastic);
    resumed->coordinator.registration.set_save_state(true);
    resumed->coordinator.registration.set_resumed(true);
    if (with_state) {
      resumed->coordinator.state.emplace();
      resumed->coordinator.state->set_clock(4);
    }
    resumed->model->needs_initialize = false;
    resumed->model->attach_clock = 4;
    REQUIRE(resumed->Run().exit == WorkerExit::kDone);
    return resumed->model->weights();
  };
  CHECK(run_on(true) == run_on(false));
}

TEST_CASE("A state that was loaded does not go on where the others have overtaken its clock") {
  const std::vector<std::string> elastic = {"exchange={type: elastic, alpha: 0.5, every: 1}",
                                            "update.momentum=0.9"};
  Rig before(elastic), resumed(elastic), afresh(elastic);
  before.coordinator.registration.set_save_state(true);
  before.coordinator.registration.set_cut_every(2);
  REQUIRE(before.Run().exit == WorkerExit::kDone);
  for (Rig* rig : {&resumed, &afresh}) {
    rig->coordinator.registration.set_save_state(true);
    rig->coordinator.registration.set_resumed(true);
    rig->model->needs_initialize = false;
  }
  afresh.model->attach_clock = 4;
  resumed.model->attach_clock = 2;
  resumed.coordinator.state.emplace();
  resumed.coordinator.state->set_clock(2);
  resumed.coordinator.state->set_data(before.coordinator.saved().at(2));
  resumed.model->script = [&](const FakeRequest& request) {
    if (request.method != "Pull" || request.header.clock() != 2) return absl::OkStatus();
    resumed.model->attach_clock = 4;
    return absl::AlreadyExistsError("clock 2 is complete");
  };
  for (Rig* rig : {&resumed, &afresh}) REQUIRE(rig->Run().exit == WorkerExit::kDone);
  CHECK(resumed.model->weights() == afresh.model->weights());
}

TEST_CASE("A cut at the very end is handed in once") {
  Rig rig({"stop.clocks=4"});
  rig.coordinator.registration.set_save_state(true);
  rig.coordinator.registration.set_cut_every(2);
  REQUIRE(rig.Run().exit == WorkerExit::kDone);
  CHECK(rig.coordinator.calls("SaveWorkerState") == 2);
}

}  // namespace
}  // namespace leeway::worker_state
