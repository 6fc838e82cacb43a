#include "worker/emulation.h"

#include "tests/catch.h"

namespace leeway::emulation {
namespace {

using std::chrono::milliseconds;

TEST_CASE("Nothing is emulated unless the job says so") {
  CHECK(Emulation({}, 0).Pause(3, milliseconds(5)) == Duration::zero());
}

TEST_CASE("A slow rank takes its factor of the least or the measured time") {
  v1::TrainingJob job;
  job.mutable_workers()->mutable_emulate()->set_step_milliseconds(10);
  v1::Slowdown* slow = job.mutable_workers()->mutable_emulate()->add_slow();
  slow->add_ranks(1);
  slow->set_factor(5);
  CHECK(Emulation(job, 0).Pause(0, milliseconds(4)) == milliseconds(6));
  CHECK(Emulation(job, 0).Pause(0, milliseconds(11)) == Duration::zero());
  CHECK(Emulation(job, 1).Pause(0, milliseconds(4)) == milliseconds(46));
  CHECK(Emulation(job, 1).Pause(0, milliseconds(20)) == milliseconds(80));
}

TEST_CASE("Chance slowdowns hit their share of the steps, the same ones each time") {
  v1::TrainingJob job;
  job.mutable_workers()->mutable_emulate()->set_step_milliseconds(1);
  v1::Slowdown* slow = job.mutable_workers()->mutable_emulate()->add_slow();
  slow->set_factor(3);
  slow->set_probability(0.1);
  const Emulation emulation(job, 2), again(job, 2), other(job, 3);
  int hits = 0, differ = 0;
  for (uint64_t step = 0; step < 2000; ++step) {
    const Duration pause = emulation.Pause(step, milliseconds(1));
    CHECK(pause == again.Pause(step, milliseconds(1)));
    differ += pause != other.Pause(step, milliseconds(1));
    hits += pause > Duration::zero();
  }
  CHECK(hits > 140);
  CHECK(hits < 260);
  CHECK(differ > 100);
}

}  // namespace
}  // namespace leeway::emulation
