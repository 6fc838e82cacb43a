#include "config/combinations.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/counted.h"
#include "config/contributors.h"
#include "config/external.h"
#include "config/length.h"
#include "config/shards.h"
#include "config/topology.h"
#include "config/topology_checks.h"

namespace leeway {
namespace {

using Faults = std::vector<Fault>;

void CheckElastic(const v1::TrainingJob& job, Faults& faults) {
  const v1::ElasticExchange& elastic = job.exchange().elastic();
  if (!elastic.has_alpha()) faults.push_back({"exchange.alpha", "required key is missing"});
  // The update is c += alpha sum_i (x_i - c). If alpha times the number of workers is 2 or more,
  // the centre's distance to the workers grows.
  const double pull = elastic.alpha() * job.workers().count();
  if (job.consistency().mode() == v1::CONSISTENCY_MODE_SYNC && pull >= 2) {
    faults.push_back({"exchange.alpha",
                      absl::StrCat(elastic.alpha(), " x ", Counted(job.workers().count(), "worker"),
                                   " is ", pull,
                                   ": in sync mode the centre diverges if this is 2 or more; lower "
                                   "the key, or remove it (the default is 0.9 / workers.count)")});
  }
  if (IsExternal(job)) return;
  if (!elastic.has_optimizer()) {
    faults.push_back({"exchange.optimizer",
                      "required key is missing: give the rule of the workers' own steps, such as "
                      "{type: sgd, learning_rate: 0.05}, here or in `update`"});
  } else if (job.has_update()) {
    faults.push_back({"update",
                      "an elastic exchange has its own server rule, so `update` is the workers' "
                      "rule, which exchange.optimizer gives as well: remove one of the two"});
  }
}

void CheckKnobs(const v1::TrainingJob& job, Faults& faults) {
  if (job.exchange().has_elastic()) {
    CheckElastic(job, faults);
  } else if (!job.has_update() && !BringsUpdate(job) && !IsGossip(job)) {
    faults.push_back({"update",
                      "required key is missing: give the servers' rule, such as {type: sgd, "
                      "learning_rate: 0.05}"});
  }
  if (job.consistency().mode() == v1::CONSISTENCY_MODE_BOUNDED &&
      !job.consistency().has_staleness()) {
    faults.push_back(
        {"consistency.staleness",
         "required key is missing with mode bounded: say how many clocks a worker may be "
         "ahead of the slowest, such as staleness: 3"});
  }
}

void CheckBackupWorkers(const v1::TrainingJob& job, Faults& faults) {
  const uint32_t backup = job.consistency().backup_workers();
  if (backup == 0) return;
  const std::string key = "consistency.backup_workers";
  if (job.consistency().mode() != v1::CONSISTENCY_MODE_SYNC) {
    faults.push_back({key,
                      "goes with consistency.mode sync only: in bounded and async mode no clock "
                      "waits for the slowest workers"});
  } else if (!job.exchange().has_gradient()) {
    faults.push_back({key,
                      "goes with a gradient exchange only: in other exchanges a dropped "
                      "contribution would lose many local steps or a worker's own weights"});
  } else if (backup >= job.workers().count()) {
    faults.push_back({key, absl::StrCat("must be less than workers.count (", job.workers().count(),
                                        "): at least one contribution must count")});
  }
}

void CheckBadGradient(const v1::TrainingJob& job, Faults& faults) {
  const v1::Exchange& exchange = job.exchange();
  const bool rejects = exchange.on_bad_gradient() == v1::BAD_GRADIENT_REJECT;
  if (!exchange.has_gradient() && !rejects) {
    faults.push_back(
        {"exchange.on_bad_gradient",
         "only a gradient can be left out or clipped: the contribution of a delta or elastic "
         "exchange comes from the worker's own weights, and those would stay bad"});
  }
  if (!exchange.has_gradient() && exchange.has_max_norm()) {
    faults.push_back({"exchange.max_norm", "goes with a gradient exchange only"});
  }
  if (exchange.on_bad_gradient() == v1::BAD_GRADIENT_CLIP && !exchange.has_max_norm()) {
    faults.push_back(
        {"exchange.max_norm",
         "required key is missing with on_bad_gradient clip: give the norm to which a longer "
         "gradient is scaled, such as max_norm: 1"});
  }
}

void CheckAssignment(const v1::TrainingJob& job, Faults& faults) {
  if (job.data().assignment() != v1::ASSIGNMENT_LEASED) return;
  const std::string key = "data.assignment";
  if (!IsExternal(job) && !job.data().partition().has_iid()) {
    faults.push_back({key,
                      "leased needs data.partition {type: iid}, because any worker may get a "
                      "leased batch; in other partitions a worker has only its own data"});
  } else if (job.consistency().mode() == v1::CONSISTENCY_MODE_SYNC && !CommitsSets(job)) {
    faults.push_back(
        {key,
         "leased does not go with a sync job that waits for lost workers, because each worker "
         "repeats its own batches there, with the same bits; leave leased out, or set "
         "workers.on_worker_loss: continue, consistency.backup_workers, or mode bounded or async"});
  }
}

void CheckSpread(const v1::TrainingJob& job, Faults& faults) {
  const bool continues = job.consistency().mode() == v1::CONSISTENCY_MODE_SYNC &&
                         job.workers().on_worker_loss() == v1::WORKER_LOSS_CONTINUE;
  if (!IsSpread(job.exchange()) || !continues) return;
  faults.push_back(
      {"exchange.spread",
       "does not go with workers.on_worker_loss: continue in mode sync: the coordinator decides "
       "which workers count once their whole contributions have arrived, but a spread worker sends "
       "its last blocks only after its first ones are answered; leave spread out"});
}

void CheckPerHost(const v1::TrainingJob& job, Faults& faults) {
  if (job.workers().per_host() != v1::PER_HOST_COMBINE) return;
  const auto fault = [&faults](absl::string_view why) {
    faults.push_back({"workers.per_host",
                      absl::StrCat("combine ", why, "; leave it out, or set per_host: separate")});
  };
  const v1::Exchange& exchange = job.exchange();
  if (job.consistency().mode() != v1::CONSISTENCY_MODE_SYNC) {
    fault(
        "goes with consistency.mode sync only: in other modes the workers of a host do not hand "
        "in the same clock at the same time, so there is no sum to send");
  } else if (job.consistency().backup_workers() > 0) {
    fault(
        "does not go with consistency.backup_workers: a clock without some workers cannot remove "
        "them from their host's sum");
  } else if (job.workers().on_worker_loss() == v1::WORKER_LOSS_CONTINUE) {
    fault(
        "does not go with workers.on_worker_loss: continue: a clock without a lost worker cannot "
        "remove that worker from its host's sum");
  } else if (exchange.has_elastic()) {
    fault(
        "goes with gradient and delta exchanges only: in an elastic exchange the servers answer "
        "each worker's own weights, which a sum does not contain");
  } else if (exchange.delta().spread()) {
    fault(
        "does not go with exchange.spread: a group of blocks is sent between local steps, and each "
        "time would wait for the other workers of the host");
  } else if (exchange.delta().weighting() == v1::WEIGHTING_EQUAL) {
    fault(
        "does not go with exchange.weighting: equal: the servers would weight hosts equally, not "
        "workers");
  }
}

void CheckServersRange(const v1::Servers& servers, Faults& faults) {
  if (servers.max() == 0) {
    if (servers.min() > 0) {
      faults.push_back({"servers.min",
                        "goes with servers.max only: without servers.max only `leeway resize` "
                        "changes the number of servers"});
    }
    return;
  }
  if (servers.max() < servers.count()) {
    faults.push_back({"servers.max", absl::StrCat("must be 0, or at least servers.count (",
                                                  servers.count(), ")")});
  }
  if (servers.shards() > 0 && servers.max() > servers.shards()) {
    faults.push_back(
        {"servers.max", absl::StrCat("must be at most servers.shards (", servers.shards(),
                                     "): each server needs a shard")});
  }
  if (servers.min() > servers.count()) {
    faults.push_back(
        {"servers.min", absl::StrCat("must be at most servers.count (", servers.count(), ")")});
  }
  if (servers.min() > 0 && servers.min() < servers.replicas()) {
    faults.push_back(
        {"servers.min", absl::StrCat("must be at least servers.replicas (", servers.replicas(),
                                     "): each copy of a block needs its own server")});
  }
}

void CheckNumberOfServers(const v1::Servers& servers, Faults& faults) {
  if (servers.shards() > 0 && servers.shards() < servers.count()) {
    faults.push_back(
        {"servers.shards", absl::StrCat("must be 0, or at least servers.count (", servers.count(),
                                        "): each server needs a shard")});
  }
  if (servers.replicas() > servers.count()) {
    faults.push_back(
        {"servers.replicas", absl::StrCat("must be at most servers.count (", servers.count(),
                                          "): each copy of a block needs its own server")});
  }
  CheckServersRange(servers, faults);
}

void CheckServers(const v1::TrainingJob& job, Faults& faults) {
  const v1::Servers& servers = job.servers();
  WorkersHoldBlocks(job) ? CheckTopology(job, faults) : CheckNumberOfServers(servers, faults);
  const uint64_t vectors = StateVectors(job);
  const bool replicated = servers.replicas() > 1;
  const bool travels = replicated || ShardsOf(job) > ServersOf(job);
  if (travels && vectors * servers.block_bytes() > kStateBytesMax) {
    faults.push_back(
        {"servers.block_bytes",
         absl::StrCat("must be at most ", kStateBytesMax / vectors, " with ",
                      replicated ? "servers.replicas: 2" : "servers.shards",
                      ", because the whole state of a block, ", vectors,
                      " vectors of this size, goes to ",
                      replicated ? "its replica" : "another server", " in one message")});
  }
}

// Adds a fault if a local optimizer has an average, because the servers keep the average.
void CheckAverage(const v1::TrainingJob& job, Faults& faults) {
  const v1::Exchange& exchange = job.exchange();
  if (exchange.delta().optimizer().has_average() || exchange.elastic().optimizer().has_average()) {
    faults.push_back({"exchange.optimizer.average",
                      exchange.has_elastic()
                          ? "does not go with an elastic exchange, whose centre is an average of "
                            "the workers' weights already: leave it out"
                          : "the servers keep the average: put it into `update`"});
  }
  if (exchange.delta().optimizer().steps_by_element() ||
      exchange.elastic().optimizer().steps_by_element()) {
    faults.push_back({"exchange.optimizer.steps_by_element",
                      "is for contributions that update only a part of the model, but a local step "
                      "updates the whole model: leave it out"});
  }
  if (job.evaluation().weights() == v1::EVALUATED_WEIGHTS_AVERAGE && !job.update().has_average()) {
    faults.push_back(
        {"evaluation.weights", "average needs update.average, such as {decay: 0.999}"});
  }
}

void CheckEvaluation(const v1::TrainingJob& job, Faults& faults) {
  CheckAverage(job, faults);
  const v1::Evaluation& evaluation = job.evaluation();
  if (!evaluation.has_early_stop()) return;
  if (!evaluation.has_every()) {
    faults.push_back({"evaluation.every",
                      "required key is missing with early_stop, which needs evaluations: say how "
                      "often, such as every: {epochs: 1}"});
  }
  if (evaluation.early_stop().metric() == v1::STOP_METRIC_TEST_ACCURACY &&
      job.model().loss() == v1::LOSS_SQUARED) {
    faults.push_back(
        {"evaluation.early_stop.metric", "loss squared has no accuracy: use metric: test_loss"});
  }
}

}  // namespace

void CheckCombinations(const v1::TrainingJob& job, std::vector<Fault>& faults) {
  CheckKnobs(job, faults);
  CheckBackupWorkers(job, faults);
  CheckPerHost(job, faults);
  CheckSpread(job, faults);
  CheckAssignment(job, faults);
  CheckBadGradient(job, faults);
  CheckServers(job, faults);
  CheckEvaluation(job, faults);
}

}  // namespace leeway
