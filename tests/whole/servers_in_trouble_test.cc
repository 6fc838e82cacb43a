// Servers that die, leave, come and are cut off while a job trains: each promise is tested once,
// with servers as objects. tests/chaos/kills.py, drain.py and resize.py do the same with real
// processes.
#include "tests/whole/trouble_rig.h"

namespace leeway::servers_in_trouble {
namespace {

using testing::CheckSameBits;
using testing::TroubleRig;

constexpr char kTwoHolders[] = "servers={count: 2, replicas: 2, shards: 4, block_bytes: 1024}";
constexpr char kOneHolder[] = "servers={count: 2, shards: 4, block_bytes: 1024}";

TEST_CASE("Killed servers with two holders: nothing goes back, the same bits") {
  CheckSameBits({kTwoHolders}, [](TroubleRig& rig) {
    for (const uint32_t victim : {1U, 0U}) {
      rig.Kill(victim);
      rig.StartAgain(victim);
    }
    CHECK(rig.Events("went_back") == 0);
  });
}

TEST_CASE("Killed servers with one holder: the job goes back to the newest cut, the same bits") {
  CheckSameBits({kOneHolder, "update={type: adam, learning_rate: 0.01}"}, [](TroubleRig& rig) {
    rig.WaitForEvents("checkpoint", 1);
    rig.Kill(1);
    rig.Start(1);
    rig.WaitForEvents("went_back", 1);
    rig.Forward();
    const int started = rig.Events("job_started");
    rig.Kill(0);
    rig.Start(0);
    rig.WaitForEvents("job_started", started + 1);
  });
}

TEST_CASE("More and fewer servers: nothing goes back, the same bits") {
  CheckSameBits({kOneHolder}, [](TroubleRig& rig) {
    rig.Resize(4);
    rig.Start(2);
    rig.Start(3);
    rig.WaitForEvents("resized", 1);
    rig.Forward();
    rig.Resize(1);
    rig.WaitForEvents("resized", 2);
    CHECK(rig.Events("went_back") == 0);
  });
}

TEST_CASE("A server is killed while shards move from it: the same bits") {
  CheckSameBits({kTwoHolders}, [](TroubleRig& rig) {
    const int placements = rig.Events("placement_changed");
    rig.Resize(3);
    rig.Start(2);
    rig.WaitForEvents("placement_changed", placements + 1);
    rig.Kill(1);
    rig.Start(1);
    rig.WaitForEvents("resized", 1);
  });
}

// Blocks have one holder: what a server does not hand over is lost.
TEST_CASE("Servers that leave in order, the coordinator's too: nothing goes back, the same bits") {
  CheckSameBits({kOneHolder}, [](TroubleRig& rig) {
    for (const uint32_t leaver : {1U, 0U}) {
      const int registered = rig.Events("server_registered");
      const int started = rig.Events("job_started");
      rig.Drain(leaver);
      rig.Start(leaver);
      rig.WaitForEvents("server_registered", registered + 1);
      if (leaver == 0) rig.WaitForEvents("job_started", started + 1);
      rig.Forward(40);
    }
    CHECK(rig.Events("server_draining") == 2);
    CHECK(rig.Events("went_back") == 0);
  });
}

TEST_CASE("A server that is cut off for a lease: its replica goes on, and it comes back") {
  CheckSameBits({kTwoHolders}, [](TroubleRig& rig) {
    rig.Hold(1);
    // The others are heard each time, and the lease of 30 s ends after some rounds.
    for (int i = 0; i < 8 && rig.Events("server_lost") == 0; ++i) {
      rig.clock().Add(std::chrono::seconds(5));
      rig.WaitFor("the workers' heartbeats", [&rig] {
        const v1::JobStatus status = rig.Status();
        return status.workers(0).seconds_since_heartbeat() < 4 &&
               status.workers(1).seconds_since_heartbeat() < 4;
      });
    }
    rig.WaitForEvents("server_lost", 1);
    rig.Forward();
    const int synced = rig.Events("replicas_synced");
    rig.Release(1);
    rig.WaitForEvents("replicas_synced", synced + 1);
    CHECK(rig.Events("server_registered") == 2);
    CHECK(rig.Events("went_back") == 0);
  });
}

TEST_CASE("A worker's next life begins beside the one before: the same bits") {
  CheckSameBits({kTwoHolders}, [](TroubleRig& rig) {
    for (const uint32_t rank : {1U, 0U}) {
      const int registered = rig.Events("worker_registered");
      rig.ReplaceWorker(rank);
      rig.WaitForEvents("worker_registered", registered + 1);
      rig.Forward();
    }
    CHECK(rig.Events("went_back") == 0);
  });
}

}  // namespace
}  // namespace leeway::servers_in_trouble
