#include "tests/sim/counts.h"

namespace leeway::sim {

std::span<const Counts::Each> Counts::All() {
  static constexpr Each kAll[] = {
      {"events", &Counts::events},
      {"contributions", &Counts::contributions},
      {"without a reply", &Counts::pushes},
      {"duplicates", &Counts::duplicates},
      {"reads of the previous", &Counts::previous_reads},
      {"old lives refused", &Counts::fenced},
      {"waits refused", &Counts::waits_refused},
      {"waits reminded", &Counts::waits_reminded},
      {"contributions rejected", &Counts::rejected},
      {"lives", &Counts::lives},
      {"told who is live", &Counts::set_lives},
      {"blocks held for cuts", &Counts::cuts},
      {"manifests", &Counts::manifests},
      {"workers stopped early", &Counts::stopped},
      {"servers killed", &Counts::server_kills},
      {"coordinators killed", &Counts::coordinator_kills},
      {"generations begun", &Counts::went_back},
      {"versions replicated", &Counts::replicated},
      {"answers held back", &Counts::held_back},
      {"streams broken", &Counts::streams_broken},
      {"placements changed", &Counts::placements},
      {"shards taken over", &Counts::take_overs},
      {"servers seen to be gone", &Counts::gone},
      {"jobs taken up", &Counts::taken_up},
      {"requests after a lease", &Counts::leases_over},
      {"gone on without a rank", &Counts::without},
      {"leases extended for all", &Counts::extended},
      {"other servers asked for", &Counts::resizes},
      {"other servers reached", &Counts::resized},
      {"servers ended in order", &Counts::servers_removed},
      {"servers drained", &Counts::drained},
      {"sets committed", &Counts::sets},
      {"sets without somebody", &Counts::smaller_sets},
      {"sets told again", &Counts::sets_again},
      {"late, refused", &Counts::late},
      {"held, dropped", &Counts::dropped},
      {"clocks given up", &Counts::rejoined},
  };
  return kAll;
}

Counts& Counts::operator+=(const Counts& other) {
  for (const Each& each : All()) this->*each.count += other.*each.count;
  return *this;
}

}  // namespace leeway::sim
