// leeway plan: what a job would be, without running it.
#include "common/codec/plan.h"

#include <algorithm>
#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bench/base/format.h"
#include "bench/base/table.h"
#include "client/parameter_client.h"
#include "common/blocks.h"
#include "common/counted.h"
#include "common/machine.h"
#include "common/status.h"
#include "common/update/schedule.h"
#include "config/device.h"
#include "config/external.h"
#include "config/job.h"
#include "config/length.h"
#include "config/shards.h"
#include "launcher/commands/checked_job.h"
#include "launcher/commands/command_support.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/finish.h"
#include "launcher/commands/kubernetes_sizes.h"
#include "launcher/commands/model_memory.h"
#include "launcher/commands/model_table.h"
#include "launcher/doctor/traffic.h"
#include "worker/data/sources/test_data.h"
#include "worker/device/job_precision.h"
#include "worker/exchange/device_encoder.h"
#include "worker/model/model.h"

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

std::string Shape(const v1::TensorSpec& tensor) {
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
        {tensor.name(), Shape(tensor), Thousands(ElementsOf(tensor)), Mebi(ElementsOf(tensor))});
  }
  std::cout << table.ToString();
}

// What a server has to begin with, all of its shards together.
struct ServerShare {
  uint64_t blocks = 0, elements = 0;
  // Elements of which it keeps a replica.
  uint64_t replicated = 0;
  // Bytes for compressed answers, of both.
  uint64_t replies = 0;
};

std::vector<ServerShare> SharesOf(const v1::TrainingJob& job, const BlockLayout& layout,
                                  const CodecPlan& codecs) {
  const uint32_t servers = job.servers().count();
  std::vector<ServerShare> shares(servers);
  for (uint32_t block = 0; block < layout.blocks(); ++block) {
    const uint32_t server = layout.ServerOf(block) % servers;
    const uint64_t elements = layout.Range(block).count;
    ++shares[server].blocks;
    shares[server].elements += elements;
    shares[server].replies += ReplyBytes(codecs.weights(block), elements);
    if (job.servers().replicas() < 2) continue;
    ServerShare& second = shares[(server + 1) % servers];
    second.replicated += elements;
    second.replies += ReplicaReplyBytes(codecs.weights(block), elements);
  }
  return shares;
}

uint64_t MemoryOf(const ServerShare& share, uint64_t slots) {
  return (share.elements + share.replicated) * (2 + slots) * sizeof(float) + share.replies;
}

// Prints them, and gives the bytes of all servers together.
absl::StatusOr<uint64_t> PrintShards(const v1::TrainingJob& job, const BlockLayout& layout,
                                     const CodecPlan& codecs) {
  ASSIGN_OR_RETURN(const uint64_t slots, ServerSlots(job));
  const bool replicated = job.servers().replicas() > 1;
  const std::vector<ServerShare> shares = SharesOf(job, layout, codecs);
  const std::string replies =
      codecs.compresses_weights() ? ", and what compressed answers need" : "";
  std::cout << "\nShards: " << Counted(layout.blocks(), "block") << " of "
            << Mebi(layout.block_elements())
            << (layout.servers() > shares.size()
                    ? absl::StrCat(" in ", Counted(layout.servers(), "shard"))
                    : "")
            << " on " << Counted(shares.size(), "server")
            << "; memory is two versions of the weights and " << slots
            << (slots == 1 ? " optimizer slot" : " optimizer slots") << replies
            << (replicated ? ", of its own blocks and of those whose replicas it keeps\n" : "\n");
  Table table({"server", "blocks", "elements", "weights", "memory"}, 0);
  // Servers differ by one shard at most: a handful tells it all.
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

// `leeway train` starts all of them here.
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

// Floats that a worker's exchange keeps on its device: with steps of its own all its `vectors`;
// what encoding there loses, twice, if it encodes there; and the bytes of what is encoded.
uint64_t DeviceFloats(const v1::TrainingJob& job, uint64_t vectors, uint64_t steps_per_clock,
                      const BlockLayout& layout, const CodecPlan& codecs) {
  const bool encodes = EncodesOnDevice(job, steps_per_clock, layout, codecs);
  const uint64_t residuals = codecs.compresses_contributions() ? kResiduals : 0;
  const uint64_t others = job.exchange().has_gradient() ? 0 : vectors - residuals;
  if (!encodes) return others * layout.total();
  return (others + kResiduals) * layout.total() + DeviceEncoder::EncodedFloats(layout, codecs);
}

// Of one worker and its model, besides `kept` floats of its exchange.
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

bool OnGpu(const v1::TrainingJob& job) {
  return ParseDevice(job.workers().device())->kind == DeviceChoice::Kind::kCuda;
}

// Batches that a worker loads ahead, and the one that it trains on.
uint64_t BytesAhead(const v1::TrainingJob& job, const TrainingData& data) {
  if (job.data().loader_threads() == 0 || !data.worth_prefetching(OnGpu(job))) return 0;
  const uint64_t values = data.shape().elements() + data.dataset().labels_each();
  return (job.data().prefetch() + uint64_t{1}) * job.data().batch_size() * values * sizeof(float);
}

// Of the host's memory, in bytes.
struct WorkerNeeds {
  // Vectors of the model's size, and what they take.
  uint64_t vectors = 0;
  uint64_t model = 0;
  // Of a batch; on a GPU they are not in this memory.
  uint64_t activations = 0;
  uint64_t data = 0;

  uint64_t all() const { return model + activations + data; }
};

// With batches of so many examples.
absl::StatusOr<WorkerNeeds> NeedsOfWorker(const v1::TrainingJob& job, const CheckedJob& checked,
                                          const CodecPlan& codecs, size_t examples) {
  WorkerNeeds needs;
  const uint64_t steps = ComputeLength(job, checked.steps_per_epoch).steps_per_clock();
  ASSIGN_OR_RETURN(needs.vectors, VectorsOfWorker(job, steps, codecs.compresses_contributions()));
  needs.model = needs.vectors * checked.model->schema().total() * sizeof(float);
  needs.data = checked.data->dataset().bytes() + BytesAhead(job, *checked.data);
  if (!OnGpu(job)) {
    needs.activations = checked.model->PlanMemory(examples, false).total() * sizeof(float);
  }
  return needs;
}

// What of a learning rate the job file does not say itself.
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

// Where each contribution is an update of its own.
void PrintShare(const v1::TrainingJob& job, uint32_t workers) {
  if (job.consistency().mode() == v1::CONSISTENCY_MODE_SYNC || job.exchange().has_elastic()) return;
  if (workers == 1) return;
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

void PrintWorkers(const v1::TrainingJob& job, const WorkerNeeds& needs,
                  const PlannedTraffic& traffic, const v1::JobLength& length) {
  const uint32_t workers = job.workers().count();
  const uint64_t steps = length.steps_per_clock();
  // `leeway train` starts all of them on this host.
  const bool combine = job.workers().per_host() == v1::PER_HOST_COMBINE;
  const std::string batch =
      needs.activations > 0 ? absl::StrCat(", ", Bytes(needs.activations), " for a batch") : "";
  std::cout << "\nWorkers: " << workers << ", each with " << Bytes(needs.model) << " for the model"
            << batch << " and " << Bytes(needs.data) << " for data\n"
            << "Exchange: " << Every(steps)
            << (combine ? "; one worker of a host sends " : "; each worker sends ")
            << Bytes(traffic.sent) << (combine ? " for all, and each receives " : " and receives ")
            << Bytes(traffic.received)
            << (steps > 1 ? absl::StrCat(", which is ", Bytes(traffic.sent / steps), " and ",
                                         Bytes(traffic.received / steps), " a step")
                          : "")
            << "; all workers together " << Bytes(traffic.sent * (combine ? 1 : workers)) << " and "
            << Bytes(traffic.received * workers) << "\n"
            << (traffic.codecs.empty() ? "" : absl::StrCat("Compression: ", traffic.codecs, "\n"))
            << "Length: " << Counted(length.steps_per_epoch(), "step") << " an epoch, "
            << LengthInWords(length) << "\n";
}

absl::StatusOr<CheckedJob> CheckAll(const PlacedJob& placed, const JobOptions& options) {
  ASSIGN_OR_RETURN(const std::string data_dir,
                   FindDataFolder(options.data, options.job_file, placed.job));
  ASSIGN_OR_RETURN(CheckedJob checked, CheckJob(placed.job, placed.places, data_dir));
  RETURN_IF_ERROR(CheckInitial(placed.job, placed.places, data_dir, *checked.model));
  return checked;
}

absl::Status ShowModel(const JobOptions& options) {
  ASSIGN_OR_RETURN(const PlacedJob placed, LoadJobWithOptions(options));
  ASSIGN_OR_RETURN(const CheckedJob checked, CheckAll(placed, options));
  std::cout << ModelTable(placed.job.model(), *checked.model, placed.job.data().batch_size());
  return absl::OkStatus();
}

// What is known before a program has registered.
absl::Status ShowExternal(const PlacedJob& placed) {
  const v1::TrainingJob& job = placed.job;
  RETURN_IF_ERROR(placed.places.Place(CheckRule(job)));
  const v1::JobLength length = ComputeLength(job, ExternalStepsPerEpoch(job));
  std::cout << "\nModel: external; its tensors come with the program, and with them memory, blocks "
               "and traffic\n";
  if (BringsUpdate(job)) {
    std::cout << "Update: comes with the program's optimizer, and is the servers' rule\n";
  }
  std::cout << "Servers: " << job.servers().count() << "\n"
            << "Workers: " << job.workers().count() << ", each with batches of "
            << Counted(job.data().batch_size(), "example") << " of the "
            << Thousands(job.data().examples()) << " of an epoch\n"
            << "Exchange: " << Every(length.steps_per_clock()) << "\n"
            << "Length: " << Counted(length.steps_per_epoch(), "step") << " an epoch, "
            << LengthInWords(length) << "\n"
            << "To start it: leeway train JOB -- COMMAND\n";
  PrintRates(job);
  return absl::OkStatus();
}

absl::Status ShowPlan(const JobOptions& options) {
  ASSIGN_OR_RETURN(const PlacedJob placed, LoadJobWithOptions(options));
  const v1::TrainingJob& job = placed.job;
  std::cout << ToYaml(job) << "\n# " << DescribeAlgorithm(job) << "\n" << std::flush;
  if (IsExternal(job)) return ShowExternal(placed);
  ASSIGN_OR_RETURN(const CheckedJob checked, CheckAll(placed, options));
  std::cerr << WarningsOf(job, checked);
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
  PrintPrecision(job);
  PrintRates(job);
  // A gradient exchange has its weights and contribution on the host only, and the batch's plan has
  // the device's.
  PrintDevice(job, *model,
              DeviceFloats(job, needs.vectors, length.steps_per_clock(), layout, codecs));
  PrintMemory(of_servers, job.workers().count() * needs.all());
  return absl::OkStatus();
}

// The largest of them, with the contributions that wait there for the other workers', when one has
// left or as many as may: the others have its shards.
absl::StatusOr<uint64_t> NeedsOfServer(const v1::TrainingJob& job, const BlockLayout& layout,
                                       const CodecPlan& codecs) {
  // What a worker sends before it is answered; twice that where the link is long.
  const uint64_t block = layout.block_elements() * sizeof(float);
  const uint64_t window = 2 * WindowFor(block) * block;
  const uint32_t others = std::max(job.servers().count(), 2u) - 1;
  v1::TrainingJob fewest = job;
  fewest.mutable_servers()->set_count(std::max(std::min(others, ServersMin(job)), 1u));
  ASSIGN_OR_RETURN(const uint64_t slots, ServerSlots(job));
  uint64_t most = 0;
  for (const ServerShare& share : SharesOf(fewest, layout, codecs)) {
    const uint64_t waiting = std::min(share.elements * sizeof(float), window);
    most = std::max(most, MemoryOf(share, slots) + job.workers().count() * waiting);
  }
  return most;
}

// The largest: worker 0, which evaluates.
absl::StatusOr<uint64_t> NeedsOfAnyWorker(const v1::TrainingJob& job, const CheckedJob& checked,
                                          const CodecPlan& codecs, const std::string& data_dir) {
  ASSIGN_OR_RETURN(const auto test, OpenTestData(job, data_dir));
  const size_t evaluated = test == nullptr ? 0 : checked.model->evaluated_at_a_time();
  ASSIGN_OR_RETURN(
      const WorkerNeeds needs,
      NeedsOfWorker(job, checked, codecs, std::max<size_t>(job.data().batch_size(), evaluated)));
  return needs.all() + (test == nullptr ? 0 : test->bytes());
}

absl::Status ShowKubernetes(const JobOptions& options) {
  ASSIGN_OR_RETURN(const PlacedJob placed, LoadJobWithOptions(options));
  const v1::TrainingJob& job = placed.job;
  ASSIGN_OR_RETURN(const CheckedJob checked, CheckAll(placed, options));
  const v1::ModelSchema& schema = checked.model->schema();
  const BlockLayout layout =
      BlockLayout::ForModel(schema.total(), ShardsOf(job), job.servers().block_bytes());
  ASSIGN_OR_RETURN(const CodecPlan codecs, PlannedCodecs(job, schema, layout));
  ASSIGN_OR_RETURN(const uint64_t server, NeedsOfServer(job, layout, codecs));
  ASSIGN_OR_RETURN(const std::string data_dir, FindDataFolder(options.data, options.job_file, job));
  ASSIGN_OR_RETURN(const uint64_t worker, NeedsOfAnyWorker(job, checked, codecs, data_dir));
  std::cout << KubernetesSizes({.servers = job.servers().count(),
                                .replicas = job.servers().replicas(),
                                .workers = job.workers().count(),
                                .server_bytes = server,
                                .worker_bytes = worker,
                                .worker_threads = job.workers().threads(),
                                .on_gpu = job.workers().device() != "cpu"});
  return absl::OkStatus();
}

}  // namespace

void AddPlanCommand(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<JobOptions>();
  auto model = std::make_shared<bool>(false);
  auto kubernetes = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand(
      "plan",
      "Print the resolved job, the model, where it would lie, memory and traffic; runs nothing");
  command->add_option("JOB", options->job_file, "The job file")->required();
  AddSetOption(*command, *options);
  AddDataOption(*command, options->data);
  CLI::Option* table =
      command->add_flag("--model", *model, "Print the model as a table instead, layer by layer");
  command
      ->add_flag("--kubernetes", *kubernetes,
                 "Print a component for kustomize instead: numbers of pods and their resources")
      ->excludes(table);
  command->callback([options, model, kubernetes, &exit_code] {
    exit_code = ShowResult(*model        ? ShowModel(*options)
                           : *kubernetes ? ShowKubernetes(*options)
                                         : ShowPlan(*options));
  });
}

}  // namespace leeway
