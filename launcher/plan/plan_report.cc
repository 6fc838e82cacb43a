#include "launcher/plan/plan_report.h"

#include <algorithm>
#include <iostream>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/blocks.h"
#include "common/codec/plan.h"
#include "common/counted.h"
#include "common/machine.h"
#include "common/status.h"
#include "common/text/format.h"
#include "common/text/table.h"
#include "common/update/schedule.h"
#include "config/external.h"
#include "config/length.h"
#include "config/shards.h"
#include "config/topology.h"
#include "launcher/doctor/traffic.h"
#include "launcher/plan/job_needs.h"
#include "launcher/plan/model_memory.h"
#include "launcher/plan/peer_traffic.h"
#include "worker/device/job_precision.h"
#include "worker/model/model.h"
#include "worker/training/device_encoder.h"

namespace leeway {
namespace {

std::string LengthInWords(const v1::JobLength& length) {
  if (length.total_clocks() > 0) {
    return absl::StrCat(Thousands(length.total_clocks()),
                        " exchanges of all workers together, however they fall to them");
  }
  return absl::StrCat(Thousands(length.steps()), length.steps() == 1 ? " step and " : " steps and ",
                      Thousands(length.clocks()), length.clocks() == 1 ? " exchange" : " exchanges",
                      " of each worker");
}

std::string Mebi(uint64_t elements) { return Bytes(elements * sizeof(float)); }

std::string SidesOf(const v1::TensorSpec& tensor) {
  return tensor.shape().empty() ? "scalar" : absl::StrJoin(tensor.shape(), " x ");
}

uint64_t ElementsOf(const v1::TensorSpec& tensor) {
  uint64_t elements = 1;
  for (const uint64_t side : tensor.shape()) elements *= side;
  return elements;
}

std::string Every(uint64_t steps) {
  return steps == 1 ? "after every step" : absl::StrCat("every ", Counted(steps, "step"));
}

void PrintModel(const v1::ModelSchema& schema, const Model::Flops& flops) {
  std::cout << "\nModel: " << Thousands(schema.total()) << " parameters, " << Mebi(schema.total());
  if (schema.total() > schema.trained()) {
    std::cout << " (" << Thousands(schema.trained()) << " trained, "
              << Thousands(schema.total() - schema.trained()) << " averaged)";
  }
  std::cout << "; " << Thousands(static_cast<uint64_t>(flops.forward + flops.backward))
            << " floating-point operations an example\n";
  Table table({"tensor", "shape", "elements", "bytes"}, 2);
  for (const v1::TensorSpec& tensor : schema.tensors()) {
    table.Add(
        {tensor.name(), SidesOf(tensor), Thousands(ElementsOf(tensor)), Mebi(ElementsOf(tensor))});
  }
  std::cout << table.ToString();
}

// Prints the shards of the servers, and returns the bytes of all servers together.
absl::StatusOr<uint64_t> PrintShards(const v1::TrainingJob& job, const BlockLayout& layout,
                                     const CodecPlan& codecs) {
  ASSIGN_OR_RETURN(const uint64_t slots, ServerSlots(job));
  const bool replicated = job.servers().replicas() > 1;
  const std::string holder = WorkersHoldBlocks(job) ? "worker" : "server";
  const std::vector<ServerShare> shares = SharesOf(job, layout, codecs);
  const std::string replies =
      codecs.compresses_weights() ? ", and what compressed answers need" : "";
  std::cout << "\nShards: " << Counted(layout.blocks(), "block") << " of "
            << Mebi(layout.block_elements())
            << (layout.shards() > shares.size()
                    ? absl::StrCat(" in ", Counted(layout.shards(), "shard"))
                    : "")
            << " on " << Counted(shares.size(), holder)
            << "; memory is two versions of the weights and " << slots
            << (slots == 1 ? " optimizer slot" : " optimizer slots") << replies
            << (replicated ? ", of its own blocks and of those whose replicas it keeps\n" : "\n");
  Table table({holder, "blocks", "elements", "weights", "memory"}, 0);
  // Print a few servers only, because servers differ by at most one shard.
  constexpr size_t kShown = 16;
  for (size_t server = 0; server < std::min(shares.size(), kShown); ++server) {
    const ServerShare& share = shares[server];
    table.Add({std::to_string(server), Thousands(share.blocks), Thousands(share.elements),
               Mebi(share.elements), Bytes(MemoryOf(share, slots))});
  }
  std::cout << table.ToString();
  if (shares.size() > kShown) {
    std::cout << "  and " << shares.size() - kShown << " more like these\n";
  }
  uint64_t bytes = 0;
  for (const ServerShare& share : shares) bytes += MemoryOf(share, slots);
  return bytes;
}

// Prints the memory of all servers and workers, because `leeway train` starts all of them on this
// machine. Warns if the machine has less.
void PrintMemory(uint64_t servers, uint64_t workers) {
  const uint64_t all = servers + workers, machine = MachineMemoryBytes();
  std::cout << "Memory: servers " << Bytes(servers) << ", workers " << Bytes(workers)
            << "; this machine has " << Bytes(machine) << "\n";
  if (all <= machine) return;
  std::cout << std::flush;
  std::cerr << "leeway: the job needs " << Bytes(all) << " and this machine has " << Bytes(machine)
            << ": put servers and workers on several machines, or make the model or the number of "
               "workers smaller\n";
}

// Returns the number of floats that a worker's exchange keeps on its device. With local steps these
// are all its `vectors`. If contributions are encoded on the device, there are also two residuals
// and the encoded bytes.
uint64_t DeviceFloats(const v1::TrainingJob& job, uint64_t vectors, uint64_t steps_per_clock,
                      const BlockLayout& layout, const CodecPlan& codecs) {
  const bool encodes = EncodesOnDevice(job, steps_per_clock, layout, codecs);
  const uint64_t residuals = codecs.compresses_contributions() ? kResiduals : 0;
  const uint64_t others = job.exchange().has_gradient() ? 0 : vectors - residuals;
  if (!encodes) return others * layout.total();
  return (others + kResiduals) * layout.total() + DeviceEncoder::EncodedFloats(layout, codecs);
}

// Prints the device memory that one worker needs for its model and for `kept` floats of its
// exchange.
void PrintDevice(const v1::TrainingJob& job, const Model& model, uint64_t kept) {
  if (job.workers().device() == "cpu") return;
  const MemoryPlan plan = model.PlanMemory(job.data().batch_size(), true);
  const size_t most = plan.largest_layer();
  const uint64_t own = plan.vectors + kept;
  const uint64_t factors = FactorBytes(PrecisionOf(job.workers())) / sizeof(float);
  std::cout << "Device: " << Mebi(plan.total() - plan.vectors + own + factors)
            << " of a GPU's memory each: " << Mebi(plan.activations())
            << " for the activations of a batch (" << model.graph().nodes[most].name << ": "
            << Mebi(plan.layers[most]) << "), " << Mebi(plan.batch) << " for its examples, "
            << Mebi(own) << " for the model"
            << (factors > 0 ? absl::StrCat(", ", Mebi(factors), " for rounded factors") : "")
            << "; besides what CUDA takes for itself, about 500 MiB\n";
}

void PrintPrecision(const v1::TrainingJob& job) {
  const Precision precision = PrecisionOf(job.workers());
  if (precision == Precision::kFp32) return;
  std::cout << "Precision: the factors of products are rounded to " << PrecisionName(precision)
            << "; all else is fp32";
  if (precision == Precision::kFp16 && job.exchange().has_gradient()) {
    std::cout << "; the gradient leaves when the backward pass is over (fp16 may overflow)";
  }
  std::cout << "\n";
}

// Prints the scaled learning rate and its warm-up, because the job file has the unscaled rate.
void PrintRate(const char* key, const v1::Update& update, uint32_t workers) {
  if (update.scaling() == v1::RATE_SCALING_NONE) return;
  const double scale = RateScale(update.scaling(), workers);
  std::cout << "Learning rate: " << key << " " << update.learning_rate() << " is "
            << update.learning_rate() * scale << " for " << Counted(workers, "worker");
  if (update.schedule().has_warm_up()) {
    std::cout << "; the warm-up rises to it from " << update.learning_rate();
  }
  std::cout << "\n";
}

// Prints the learning rate of a single contribution if each contribution is an update of its own.
void PrintShare(const v1::TrainingJob& job, uint32_t workers) {
  if (job.consistency().mode() == v1::CONSISTENCY_MODE_SYNC || job.exchange().has_elastic()) return;
  if (workers == 1 || IsGossip(job)) return;
  const double share = RateScale(job.update().scaling(), workers) / workers;
  std::cout << "Each contribution is an update of its own, with "
            << job.update().learning_rate() * share << ": a clock of " << workers
            << " workers moves the model as far as in sync mode\n";
}

void PrintRates(const v1::TrainingJob& job) {
  const uint32_t workers = job.workers().count();
  const v1::Exchange& exchange = job.exchange();
  constexpr char kLocal[] = "exchange.optimizer.learning_rate";
  PrintRate("update.learning_rate", job.update(), workers);
  PrintRate(kLocal, exchange.delta().optimizer(), workers);
  PrintRate(kLocal, exchange.elastic().optimizer(), workers);
  PrintShare(job, workers);
}

// Returns what each worker sends to the holders of the blocks, and receives from them. With workers
// that fetch from each other, PeerTrafficText says it.
std::string ExchangeText(const v1::TrainingJob& job, const PlannedTraffic& traffic,
                         uint64_t steps) {
  if (WorkersFetch(job)) return "";
  const uint32_t workers = job.workers().count();
  // `leeway train` starts all workers here, so if they combine, one worker sends for all.
  const bool combine = job.workers().per_host() == v1::PER_HOST_COMBINE;
  return absl::StrCat(
      combine ? "; one worker of a host sends " : "; each worker sends ", Bytes(traffic.sent),
      combine ? " for all, and each receives " : " and receives ", Bytes(traffic.received),
      steps > 1 ? absl::StrCat(", which is ", Bytes(traffic.sent / steps), " and ",
                               Bytes(traffic.received / steps), " a step")
                : "",
      "; all workers together ", Bytes(traffic.sent * (combine ? 1 : workers)), " and ",
      Bytes(traffic.received * workers));
}

void PrintWorkers(const v1::TrainingJob& job, const WorkerNeeds& needs,
                  const PlannedTraffic& traffic, const v1::JobLength& length) {
  const uint64_t steps = length.steps_per_clock();
  const auto part = [](uint64_t bytes, const char* what) {
    return bytes > 0 ? absl::StrCat(", ", Bytes(bytes), " for ", what) : "";
  };
  std::cout << "\nWorkers: " << job.workers().count() << ", each with " << Bytes(needs.model)
            << " for the model" << part(needs.of_peers, "the exchange with others")
            << part(needs.activations, "a batch") << " and " << Bytes(needs.data) << " for data\n"
            << "Exchange: " << Every(steps) << ExchangeText(job, traffic, steps) << "\n"
            << (traffic.codecs.empty() ? "" : absl::StrCat("Compression: ", traffic.codecs, "\n"))
            << "Length: " << Counted(length.steps_per_epoch(), "step") << " an epoch, "
            << LengthInWords(length) << "\n";
}

}  // namespace

absl::Status PrintPlan(const v1::TrainingJob& job, const CheckedJob& checked) {
  const Model* model = checked.model.get();
  const uint64_t total = model->schema().total();
  const BlockLayout layout =
      BlockLayout::ForModel(total, ShardsOf(job), job.servers().block_bytes());
  PrintModel(model->schema(), model->flops());
  ASSIGN_OR_RETURN(const CodecPlan codecs, PlannedCodecs(job, model->schema(), layout));
  ASSIGN_OR_RETURN(const uint64_t of_servers, PrintShards(job, layout, codecs));
  ASSIGN_OR_RETURN(const PlannedTraffic traffic, TrafficOf(job, model->schema(), layout));
  const v1::JobLength length = ComputeLength(job, checked.steps_per_epoch);
  ASSIGN_OR_RETURN(const WorkerNeeds needs,
                   NeedsOfWorker(job, checked, codecs, job.data().batch_size()));
  PrintWorkers(job, needs, traffic, length);
  std::cout << PeerTrafficText(job, traffic);
  PrintPrecision(job);
  PrintRates(job);
  // For a gradient exchange, the vectors of the exchange are on the host only. The memory plan of
  // the batch already includes the weights and the gradient on the device.
  PrintDevice(job, *model,
              DeviceFloats(job, needs.vectors, length.steps_per_clock(), layout, codecs));
  PrintMemory(of_servers, job.workers().count() * needs.all());
  return absl::OkStatus();
}

absl::Status PrintExternalPlan(const PlacedJob& placed) {
  const v1::TrainingJob& job = placed.job;
  RETURN_IF_ERROR(placed.places.Place(CheckRule(job)));
  const v1::JobLength length = ComputeLength(job, ExternalStepsPerEpoch(job));
  std::cout << "\nModel: external; its tensors come with the program, and with them memory, blocks "
               "and traffic\n";
  if (BringsUpdate(job)) {
    std::cout << "Update: comes with the program's optimizer, and is the servers' rule\n";
  }
  std::cout << (WorkersHoldBlocks(job)
                    ? std::string("Servers: 1, the coordinator; each worker holds an equal part of "
                                  "the blocks\n")
                    : absl::StrCat("Servers: ", job.servers().count(), "\n"))
            << "Workers: " << job.workers().count() << ", each with batches of "
            << Counted(job.data().batch_size(), "example") << " of the "
            << Thousands(job.data().examples()) << " of an epoch\n"
            << "Exchange: " << Every(length.steps_per_clock()) << "\n"
            << "Length: " << Counted(length.steps_per_epoch(), "step") << " an epoch, "
            << LengthInWords(length) << "\n"
            << PeerTrafficText(job, std::nullopt) << "To start it: leeway train JOB -- COMMAND\n";
  PrintRates(job);
  return absl::OkStatus();
}

}  // namespace leeway
