#include "config/topology_checks.h"

#include <algorithm>
#include <string>

#include <google/protobuf/util/message_differencer.h>

#include "absl/strings/str_cat.h"
#include "config/resolve.h"
#include "config/topology.h"

namespace leeway {
namespace {

using Faults = std::vector<Fault>;

// The largest number of workers that hold blocks, the same as for servers (servers.count).
constexpr uint32_t kPeersMax = 4096;

// Returns the choice that makes workers fetch from each other, such as "topology.algorithm ring".
std::string ChoiceOf(const v1::TrainingJob& job) {
  if (IsGossip(job)) return "topology.type gossip";
  return absl::StrCat(
      "topology.algorithm ",
      job.topology().all_reduce().algorithm() == v1::ALL_REDUCE_ALGORITHM_RING ? "ring" : "tree");
}

void CheckHoldingWorkers(const v1::TrainingJob& job, Faults& faults) {
  const std::string type = TopologyType(job);
  const uint32_t workers = job.workers().count();
  if (job.security().tls().mode() == v1::TLS_MODE_TLS) {
    faults.push_back(
        {"security.tls.mode", absl::StrCat("must be mtls with topology.type ", type,
                                           ", because each worker answers the others")});
  }
  if (workers > kPeersMax) {
    faults.push_back({"workers.count",
                      absl::StrCat("must be at most ", kPeersMax, " with topology.type ", type)});
  }
  if (job.servers().replicas() > workers) {
    faults.push_back(
        {"servers.replicas",
         absl::StrCat("must be at most workers.count (", workers, ") with topology.type ", type,
                      ": a block's holders are different workers")});
  }
}

void CheckAllReduce(const v1::TrainingJob& job, Faults& faults) {
  if (job.exchange().has_elastic()) {
    faults.push_back(
        {"topology",
         "all_reduce goes with gradient and delta exchanges: an elastic one pulls the "
         "workers to weights that they do not all have; use topology: {type: servers}"});
  }
  if (job.consistency().mode() != v1::CONSISTENCY_MODE_SYNC) {
    faults.push_back({"topology",
                      "all_reduce goes with consistency.mode sync only, because each sum needs all "
                      "workers; use mode: sync, or topology: {type: servers}"});
  }
}

// Checks what a sum that travels from worker to worker cannot do.
void CheckTravellingSum(const v1::TrainingJob& job, Faults& faults) {
  const std::string choice = ChoiceOf(job);
  const auto fault = [&](const char* key, absl::string_view what, absl::string_view why,
                         absl::string_view remedy) {
    faults.push_back({key, absl::StrCat(what, "does not go with ", choice, ", because ", why, "; ",
                                        remedy, ", or use algorithm: direct")});
  };
  constexpr absl::string_view kWhole =
      "a sum that travels from worker to worker cannot leave one out";
  if (job.workers().on_worker_loss() == v1::WORKER_LOSS_CONTINUE) {
    fault("workers.on_worker_loss", "continue ", kWhole, "set on_worker_loss: wait");
  }
  if (job.consistency().backup_workers() > 0) {
    fault("consistency.backup_workers", "", kWhole, "leave it out");
  }
  if (job.exchange().delta().weighting() == v1::WEIGHTING_EQUAL) {
    fault("exchange.weighting", "equal ", "each worker adds its change times its examples",
          "leave it out");
  }
  if (job.exchange().delta().spread()) {
    fault(
        "exchange.spread", "",
        "each worker weighs all blocks of a clock alike, but spread blocks have different numbers "
        "of examples",
        "leave it out");
  }
}

bool Compresses(const v1::Codec& codec) {
  return codec.type_case() != v1::Codec::TYPE_NOT_SET && !codec.has_none();
}

bool Compresses(const v1::Compression& compression) {
  const auto& layers = compression.layers();
  return Compresses(compression.contributions()) || Compresses(compression.weights()) ||
         std::any_of(layers.begin(), layers.end(), [](const v1::LayerCompression& layer) {
           return Compresses(layer.contributions()) || Compresses(layer.weights());
         });
}

void CheckFetching(const v1::TrainingJob& job, Faults& faults) {
  const std::string choice = ChoiceOf(job);
  if (Compresses(job.compression())) {
    faults.push_back(
        {"compression",
         absl::StrCat("does not go with ", choice,
                      IsGossip(job)
                          ? ", because what a codec loses of a worker's own weights stays lost; "
                            "leave it out"
                          : ", because each worker on the way would round the sum again; leave it "
                            "out, or use algorithm: direct")});
  }
  if (job.workers().per_host() == v1::PER_HOST_COMBINE) {
    faults.push_back(
        {"workers.per_host",
         absl::StrCat("combine does not go with ", choice,
                      IsGossip(job) ? ", because each worker has weights of its own"
                                    : ", because each worker adds to the sum that it passes on",
                      "; leave it out, or set per_host: separate")});
  }
}

// Checks the rule of the blocks, which is to make them the mean of all weights.
void CheckMean(const v1::TrainingJob& job, Faults& faults) {
  v1::Update update = job.update();
  update.clear_average();
  v1::Update plain = UpdateOfGossip();
  if (!ResolveUpdate(plain).ok() ||
      !google::protobuf::util::MessageDifferencer::Equals(update, plain)) {
    faults.push_back(
        {"update",
         "must be {type: sgd, learning_rate: 1} with topology.type gossip, because the blocks "
         "become the mean of all weights: leave it out (--set update=), and give the rule of the "
         "workers' steps as exchange.optimizer"});
  }
  if (job.update().has_average()) {
    faults.push_back({"update.average",
                      "does not go with topology.type gossip, whose blocks are a mean of the "
                      "workers' weights already: leave it out"});
  }
  if (job.exchange().delta().weighting() != v1::WEIGHTING_EQUAL) {
    faults.push_back({"exchange.weighting",
                      "must be equal with topology.type gossip, because each worker has the same "
                      "weight in the mean: leave it out"});
  }
}

void CheckGossip(const v1::TrainingJob& job, Faults& faults) {
  const v1::Gossip& gossip = job.topology().gossip();
  const uint32_t workers = job.workers().count();
  if (job.consistency().mode() == v1::CONSISTENCY_MODE_BOUNDED) {
    faults.push_back(
        {"consistency.mode", "bounded gossip is not there yet: use mode: sync or async"});
  }
  const bool sync = job.consistency().mode() == v1::CONSISTENCY_MODE_SYNC;
  if (sync && (job.workers().on_worker_loss() == v1::WORKER_LOSS_CONTINUE ||
               job.consistency().backup_workers() > 0)) {
    faults.push_back({"topology",
                      "gossip in sync mode needs all neighbours of each clock, so it goes neither "
                      "with on_worker_loss: continue nor with backup_workers: leave them out, or "
                      "use mode: async, in which a lost worker costs the others nothing"});
  }
  // With fewer than two workers, a group is the worker itself.
  if (gossip.has_group() && gossip.group() > std::max(workers, 2u)) {
    faults.push_back(
        {"topology.group", absl::StrCat("must be at most workers.count (", workers, ")")});
  }
  if (!job.exchange().has_delta()) {
    faults.push_back(
        {"topology",
         "gossip goes with a delta exchange only, because each worker has weights of its own, "
         "which its own optimizer moves; use exchange: {type: delta, local_steps: 1, optimizer: "
         "{type: sgd, learning_rate: 0.05}}, or another topology"});
    return;
  }
  CheckMean(job, faults);
  if (job.exchange().delta().spread()) {
    faults.push_back({"exchange.spread",
                      "does not go with topology.type gossip, because a worker publishes all its "
                      "weights at the end of a clock: leave it out"});
  }
}

}  // namespace

void CheckTopology(const v1::TrainingJob& job, Faults& faults) {
  CheckHoldingWorkers(job, faults);
  if (WorkersFetch(job)) CheckFetching(job, faults);
  if (IsGossip(job)) {
    CheckGossip(job, faults);
  } else {
    CheckAllReduce(job, faults);
    if (WorkersFetch(job)) CheckTravellingSum(job, faults);
  }
}

void CheckGroup(const v1::Topology& topology, Faults& faults) {
  const v1::Gossip& gossip = topology.gossip();
  if (!gossip.has_group() || gossip.graph() == v1::GOSSIP_GRAPH_RANDOM) return;
  faults.push_back({"topology.group",
                    "goes with graph: random only, which draws groups of this size: leave it out, "
                    "or set graph: random"});
}

}  // namespace leeway
