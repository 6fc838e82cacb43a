#include "launcher/plan/algorithm.h"

#include "absl/strings/str_cat.h"
#include "config/external.h"
#include "config/topology.h"

namespace leeway {
namespace {

std::string UpdateName(const v1::Update& update) {
  switch (update.type_case()) {
    case v1::Update::kSgd:
      return update.sgd().nesterov()       ? "sgd with Nesterov momentum"
             : update.sgd().momentum() > 0 ? "sgd with momentum"
                                           : "sgd";
    case v1::Update::kAdagrad:
      return "adagrad";
    case v1::Update::kAdam:
      return "adam";
    case v1::Update::kAdamw:
      return "adamw";
    case v1::Update::kLion:
      return "lion";
    case v1::Update::kCustom:
      return update.custom().rule();
    case v1::Update::TYPE_NOT_SET:
      break;
  }
  return "no update";
}

// Returns the name of the optimizer of a worker's own steps.
std::string OptimizerName(const v1::TrainingJob& job, const v1::Update& optimizer) {
  return IsExternal(job) ? "with the program's own optimizer" : UpdateName(optimizer);
}

std::string ConsistencyName(const v1::Consistency& consistency) {
  switch (consistency.mode()) {
    case v1::CONSISTENCY_MODE_SYNC:
      return "synchronous";
    case v1::CONSISTENCY_MODE_BOUNDED:
      return absl::StrCat("bounded staleness ", consistency.staleness());
    case v1::CONSISTENCY_MODE_ASYNC:
      return "asynchronous";
  }
  return "";
}

// Returns with whom workers exchange if they hold the blocks: ", all-reduce in a ring".
std::string TopologyName(const v1::TrainingJob& job) {
  const v1::Topology& topology = job.topology();
  if (topology.has_all_reduce()) {
    switch (topology.all_reduce().algorithm()) {
      case v1::ALL_REDUCE_ALGORITHM_DIRECT:
        return ", all-reduce";
      case v1::ALL_REDUCE_ALGORITHM_RING:
        return ", all-reduce in a ring";
      case v1::ALL_REDUCE_ALGORITHM_TREE:
        return ", all-reduce along trees";
    }
  }
  if (!topology.has_gossip()) return "";
  if (job.consistency().mode() == v1::CONSISTENCY_MODE_ASYNC) return ", gossip in pairs";
  switch (topology.gossip().graph()) {
    case v1::GOSSIP_GRAPH_RING:
      return ", gossip in a ring";
    case v1::GOSSIP_GRAPH_EXPONENTIAL:
      return ", gossip in an exponential graph";
    case v1::GOSSIP_GRAPH_RANDOM:
      return absl::StrCat(", gossip in random groups of ", topology.gossip().group());
  }
  return "";
}

}  // namespace

std::string DescribeAlgorithm(const v1::TrainingJob& job) {
  std::string text = ConsistencyName(job.consistency());
  const v1::Exchange& exchange = job.exchange();
  if (exchange.has_delta()) {
    absl::StrAppend(&text, ", delta exchange every ", exchange.delta().local_steps(),
                    " steps, worker ", OptimizerName(job, exchange.delta().optimizer()));
  } else if (exchange.has_elastic()) {
    absl::StrAppend(&text, ", elastic exchange every ", exchange.elastic().every(),
                    " steps, worker ", OptimizerName(job, exchange.elastic().optimizer()));
  } else {
    absl::StrAppend(&text, ", gradient exchange");
  }
  if (IsGossip(job)) return text + TopologyName(job);
  if (job.has_update()) absl::StrAppend(&text, ", server ", UpdateName(job.update()));
  if (BringsUpdate(job)) absl::StrAppend(&text, ", server with the program's own optimizer");
  return text + TopologyName(job);
}

}  // namespace leeway
