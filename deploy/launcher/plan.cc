// leeway plan: what a job would be, without running it.
#include <algorithm>
#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/blocks.h"
#include "common/status.h"
#include "common/update/rule.h"
#include "config/job.h"
#include "config/length.h"
#include "config/shards.h"
#include "deploy/base/format.h"
#include "deploy/base/table.h"
#include "deploy/base/traffic.h"
#include "deploy/launcher/command_support.h"
#include "deploy/launcher/commands.h"
#include "deploy/launcher/data_check.h"
#include "deploy/launcher/finish.h"
#include "worker/compute/make_backend.h"
#include "worker/data/training_data.h"
#include "worker/model/model.h"

namespace leeway {
namespace {

std::string LengthInWords(const v1::JobLength& length) {
  if (length.total_clocks() > 0) {
    return absl::StrCat(Thousands(length.total_clocks()),
                        " exchanges of all workers together, however they fall to them");
  }
  return absl::StrCat(Thousands(length.steps()), " steps and ", Thousands(length.clocks()),
                      " exchanges of each worker");
}

std::string Mebi(uint64_t elements) { return Bytes(elements * sizeof(float)); }

// Optimizer state that `update` keeps for each element.
absl::StatusOr<uint64_t> SlotsOf(const v1::Update& update) {
  if (update.type_case() == v1::Update::TYPE_NOT_SET) return 0;
  ASSIGN_OR_RETURN(const std::unique_ptr<UpdateRule> rule, MakeUpdateRule(update));
  return rule->slots().size();
}

// The longest worker's batches in a pass over its data.
absl::StatusOr<uint64_t> StepsPerEpoch(const v1::TrainingJob& job, const std::string& data_dir,
                                       const TrainingData& first) {
  uint64_t steps = first.steps_per_epoch();
  // Dealt from one permutation, all ranks have as many but for the last batch, of which rank 0 has
  // its share first.
  if (job.data().partition().has_iid()) return steps;
  for (uint32_t rank = 1; rank < job.workers().count(); ++rank) {
    ASSIGN_OR_RETURN(const std::unique_ptr<TrainingData> data,
                     TrainingData::Open(job, data_dir, rank));
    steps = std::max(steps, data->steps_per_epoch());
  }
  return steps;
}

std::string Shape(const v1::TensorSpec& tensor) {
  return tensor.shape().empty() ? "scalar" : absl::StrJoin(tensor.shape(), " x ");
}

uint64_t ElementsOf(const v1::TensorSpec& tensor) {
  uint64_t elements = 1;
  for (const uint64_t side : tensor.shape()) elements *= side;
  return elements;
}

std::string Every(uint64_t steps) {
  return steps == 1 ? "after every step" : absl::StrCat("every ", steps, " steps");
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
};

std::vector<ServerShare> SharesOf(const v1::TrainingJob& job, const BlockLayout& layout) {
  const uint32_t servers = job.servers().count();
  std::vector<ServerShare> shares(servers);
  for (uint32_t shard = 0; shard < layout.servers(); ++shard) {
    ServerShare& share = shares[shard % servers];
    share.blocks += layout.BlocksOn(shard);
    share.elements += layout.ElementsOn(shard);
    if (job.servers().replicas() < 2) continue;
    shares[(shard % servers + 1) % servers].replicated += layout.ElementsOn(shard);
  }
  return shares;
}

absl::Status PrintShards(const v1::TrainingJob& job, const BlockLayout& layout) {
  ASSIGN_OR_RETURN(const uint64_t slots, SlotsOf(job.update()));
  const bool replicated = job.servers().replicas() > 1;
  const std::vector<ServerShare> shares = SharesOf(job, layout);
  std::cout << "\nShards: " << layout.blocks() << " blocks of " << Mebi(layout.block_elements())
            << (layout.servers() > shares.size() ? absl::StrCat(" in ", layout.servers(), " shards")
                                                 : "")
            << " on " << shares.size() << " servers; memory is two versions of the weights and "
            << slots << (slots == 1 ? " optimizer slot" : " optimizer slots")
            << (replicated ? ", of its own blocks and of those whose replicas it keeps\n" : "\n");
  Table table({"server", "blocks", "elements", "weights", "memory"}, 0);
  // Servers differ by one shard at most: a handful tells it all.
  constexpr size_t kShown = 16;
  for (size_t server = 0; server < std::min(shares.size(), kShown); ++server) {
    const ServerShare& share = shares[server];
    table.Add({std::to_string(server), Thousands(share.blocks), Thousands(share.elements),
               Mebi(share.elements), Mebi((share.elements + share.replicated) * (2 + slots))});
  }
  std::cout << table.ToString();
  if (shares.size() > kShown) {
    std::cout << "  and " << shares.size() - kShown << " more like these\n";
  }
  return absl::OkStatus();
}

absl::Status PrintWorkers(const v1::TrainingJob& job, uint64_t total, const Traffic& traffic,
                          const v1::JobLength& length, uint64_t data_bytes) {
  const v1::Exchange& exchange = job.exchange();
  const bool local = exchange.has_delta() || exchange.has_elastic();
  ASSIGN_OR_RETURN(const uint64_t slots,
                   SlotsOf(exchange.has_delta() ? exchange.delta().optimizer()
                                                : exchange.elastic().optimizer()));
  // Weights and contribution; with local steps also where they began, and the local optimizer's
  // slots.
  const uint64_t memory = total * (2 + (local ? 1 + slots : 0));
  const uint32_t workers = job.workers().count();
  const uint64_t steps = length.steps_per_clock();
  std::cout << "\nWorkers: " << workers << ", each with " << Mebi(memory) << " for the model and "
            << Bytes(data_bytes) << " for data, besides activations\n"
            << "Exchange: " << Every(steps) << "; each worker sends " << Bytes(traffic.sent)
            << " and receives " << Bytes(traffic.received)
            << (steps > 1 ? absl::StrCat(", which is ", Bytes(traffic.sent / steps), " and ",
                                         Bytes(traffic.received / steps), " a step")
                          : "")
            << "; all workers together " << Bytes(traffic.sent * workers) << " and "
            << Bytes(traffic.received * workers) << "\n"
            << (traffic.codecs.empty() ? "" : absl::StrCat("Compression: ", traffic.codecs, "\n"))
            << "Length: " << Thousands(length.steps_per_epoch()) << " steps an epoch, "
            << LengthInWords(length) << "\n";
  return absl::OkStatus();
}

absl::Status ShowPlan(const JobOptions& options) {
  ASSIGN_OR_RETURN(const v1::TrainingJob job, LoadJobWithOptions(options));
  std::cout << ToYaml(job) << "\n# " << DescribeAlgorithm(job) << "\n" << std::flush;
  ASSIGN_OR_RETURN(const std::string data_dir, FindDataFolder(options.data, options.job_file));
  RETURN_IF_ERROR(Annotate(CheckDataFiles(job, data_dir),
                           "the model's size follows from the shape of the data"));
  ASSIGN_OR_RETURN(const std::unique_ptr<TrainingData> data, TrainingData::Open(job, data_dir, 0));
  ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend, MakeBackend(job.workers()));
  ASSIGN_OR_RETURN(const std::unique_ptr<Model> model,
                   Model::Build(job.model(), data->shape(), data->classes(), *backend));
  ASSIGN_OR_RETURN(const uint64_t steps, StepsPerEpoch(job, data_dir, *data));
  const uint64_t total = model->schema().total();
  const BlockLayout layout =
      BlockLayout::ForModel(total, ShardsOf(job), job.servers().block_bytes());
  PrintModel(model->schema(), model->flops());
  RETURN_IF_ERROR(PrintShards(job, layout));
  ASSIGN_OR_RETURN(const Traffic traffic, TrafficOf(job, model->schema(), layout));
  return PrintWorkers(job, total, traffic, ComputeLength(job, steps), data->dataset().bytes());
}

}  // namespace

void AddPlanCommand(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<JobOptions>();
  CLI::App* command = app.add_subcommand(
      "plan",
      "Print the resolved job, the model, where it would lie, memory and traffic; runs nothing");
  command->add_option("JOB", options->job_file, "The job file")->required();
  AddSetOption(*command, *options);
  AddDataOption(*command, options->data);
  command->callback([options, &exit_code] { exit_code = ShowResult(ShowPlan(*options)); });
}

}  // namespace leeway
