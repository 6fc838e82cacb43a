#include "launcher/plan/peer_traffic.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/counted.h"
#include "common/text/format.h"
#include "config/gossip_graph.h"
#include "config/topology.h"

namespace leeway {
namespace {

// A contraction below this is rounding.
constexpr double kNothing = 1e-9;

// Writes multiples of what a worker sends and receives in an exchange with all holders, half of
// both together.
class Amounts {
 public:
  explicit Amounts(const std::optional<PlannedTraffic>& traffic) : traffic_(traffic) {}

  std::string Of(double exchanges) const {
    if (!traffic_) return absl::StrCat(Fixed(exchanges, 2), " x the model");
    const double both = static_cast<double>(traffic_->sent + traffic_->received);
    return Bytes(static_cast<uint64_t>(std::llround(both / 2 * exchanges)));
  }

 private:
  const std::optional<PlannedTraffic>& traffic_;
};

uint32_t Log2Of(uint32_t workers) { return std::bit_width(workers - 1); }

// Returns "1, 2 and 4".
std::string Listed(std::vector<std::string> items) {
  if (items.size() == 1) return items.front();
  const std::string last = items.back();
  items.pop_back();
  return absl::StrCat(absl::StrJoin(items, ", "), " and ", last);
}

// Returns the powers of two below the number of workers.
std::string Distances(uint32_t workers) {
  std::vector<std::string> distances;
  for (uint32_t distance = 1; distance < workers; distance *= 2) {
    distances.push_back(absl::StrCat(distance));
  }
  return Listed(std::move(distances));
}

// Returns what a worker sends along the trees (exchange/carriers/relay_route.h), by distance. In
// the tree of a block, the parent of the worker with number p from the root on has the number p
// without its lowest set bit. So over a distance d go the blocks of as many roots as there are odd
// multiples of d below the number of workers: sums towards the parent, and weights to the child.
std::string TreeLinks(uint32_t workers, const Amounts& amounts) {
  std::vector<std::string> links;
  for (uint32_t distance = 1; distance < workers; distance *= 2) {
    const uint32_t roots = (workers - 1) / distance - (workers - 1) / (2 * distance);
    links.push_back(absl::StrCat(amounts.Of(1.0 * roots / workers), " for d = ", distance));
  }
  return Listed(std::move(links));
}

std::string AllReduceText(const v1::TrainingJob& job, const Amounts& amounts) {
  const uint32_t workers = job.workers().count();
  if (workers == 1) return "All-reduce: the only worker holds all blocks\n";
  const double sent = 2.0 * (workers - 1) / workers;
  const std::string holds = absl::StrCat("holds 1/", workers, " of the blocks");
  switch (job.topology().all_reduce().algorithm()) {
    case v1::ALL_REDUCE_ALGORITHM_DIRECT:
      return absl::StrCat("All-reduce: each worker ", holds,
                          " and exchanges with all others; over the network it sends and receives ",
                          amounts.Of(sent), " a clock, ", amounts.Of(sent / (workers - 1)),
                          " with each\n");
    case v1::ALL_REDUCE_ALGORITHM_RING:
      return absl::StrCat("All-reduce, ring: each worker ", holds, "; rank r sends ",
                          amounts.Of(sent),
                          " a clock to rank r + 1 only, and receives as much from rank r - 1, in ",
                          2 * (workers - 1), " hops\n");
    case v1::ALL_REDUCE_ALGORITHM_TREE:
      return absl::StrCat("All-reduce, tree: each worker ", holds,
                          "; rank r sends each of the ranks r - d and r + d ",
                          TreeLinks(workers, amounts), "; that is ", amounts.Of(sent),
                          " a clock, and it receives as much, in ", 2 * Log2Of(workers), " hops\n");
  }
  return "";
}

// Returns who mixes with whom, and how many bytes a clock.
std::string MixingText(const v1::TrainingJob& job, const Amounts& amounts) {
  const uint32_t workers = job.workers().count();
  const v1::Gossip& gossip = job.topology().gossip();
  const std::string one = amounts.Of(1);
  if (job.consistency().mode() == v1::CONSISTENCY_MODE_ASYNC) {
    return absl::StrCat(
        "Gossip: in each of its clocks a worker meets another one, drawn at random, "
        "and sends and receives ",
        one, "; on average one other worker meets it, with as much\n");
  }
  const uint32_t group = std::min(gossip.group(), workers);
  switch (gossip.graph()) {
    case v1::GOSSIP_GRAPH_RING:
      if (workers == 2) break;
      return absl::StrCat(
          "Gossip, ring: in each clock rank r fetches the weights of the ranks r - "
          "1 and r + 1, ",
          one, " each, and sends as much\n");
    case v1::GOSSIP_GRAPH_EXPONENTIAL:
      if (workers == 2) break;
      return absl::StrCat(
          "Gossip, exponential: in each clock a worker fetches the weights of one "
          "rank, ",
          Distances(workers), " before it in turn, ", one, ", and sends as much\n");
    case v1::GOSSIP_GRAPH_RANDOM:
      return absl::StrCat(
          "Gossip, random: in each clock a worker fetches the weights of the others "
          "in its group of ",
          workers % group == 0 ? "" : "at most ", group, ", ", one, " each, and sends as much\n");
  }
  return absl::StrCat("Gossip: in each clock a worker fetches the weights of the other one, ", one,
                      ", and sends as much\n");
}

// Returns how fast all weights approach their mean.
std::string ContractionText(const v1::TrainingJob& job) {
  const uint32_t workers = job.workers().count();
  const v1::Gossip& gossip = job.topology().gossip();
  const bool async = job.consistency().mode() == v1::CONSISTENCY_MODE_ASYNC;
  const bool turns = !async && gossip.graph() == v1::GOSSIP_GRAPH_EXPONENTIAL;
  const double factor = async ? MeetingContraction(workers) : ContractionOf(gossip, workers);
  if (factor < kNothing) {
    return absl::StrCat("Contraction: 0; after ", Counted(turns ? Log2Of(workers) : 1, "clock"),
                        " without steps all weights are their mean\n");
  }
  return absl::StrCat(
      "Contraction: a clock without steps multiplies the distance from the mean of all weights by ",
      Fixed(factor, 3), ", so its half-life in clocks is ",
      Fixed(std::log(0.5) / std::log(factor), 1),
      turns
          ? absl::StrCat("; with a power of two of workers, and not ", workers, ", it would vanish")
          : "",
      "\n");
}

std::string GossipText(const v1::TrainingJob& job, const Amounts& amounts) {
  const uint32_t workers = job.workers().count();
  if (workers == 1) return "Gossip: the only worker has no other to mix with\n";
  return absl::StrCat(
      MixingText(job, amounts), "Mean: each worker holds 1/", workers, " of the mean; every ",
      Counted(job.topology().gossip().mean_every(), "clock"),
      ", at each checkpoint and at the end it exchanges the mean with the others, up to ",
      amounts.Of(1.0 * (workers - 1) / workers), " in each direction\n", ContractionText(job));
}

}  // namespace

std::string PeerTrafficText(const v1::TrainingJob& job,
                            const std::optional<PlannedTraffic>& traffic) {
  if (!WorkersHoldBlocks(job)) return "";
  const Amounts amounts(traffic);
  return IsGossip(job) ? GossipText(job, amounts) : AllReduceText(job, amounts);
}

}  // namespace leeway
