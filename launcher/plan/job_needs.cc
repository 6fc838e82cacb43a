#include "launcher/plan/job_needs.h"

#include <algorithm>

#include "client/calls/parameter_client.h"
#include "common/status.h"
#include "config/device.h"
#include "config/length.h"
#include "config/shards.h"
#include "config/topology.h"
#include "launcher/doctor/traffic.h"
#include "launcher/plan/model_memory.h"
#include "worker/data/sources/test_data.h"

namespace leeway {
namespace {

// Returns the bytes of the batches that a worker loads ahead, and of the batch that it trains on.
uint64_t BytesAhead(const v1::TrainingJob& job, const TrainingData& data) {
  if (job.data().loader_threads() == 0 || !data.worth_prefetching(OnGpu(job))) return 0;
  const uint64_t values = data.shape().elements() + data.dataset().labels_each();
  return (job.data().prefetch() + uint64_t{1}) * job.data().batch_size() * values * sizeof(float);
}

absl::StatusOr<uint64_t> NeedsOfServer(const v1::TrainingJob& job, const BlockLayout& layout,
                                       const CodecPlan& codecs) {
  // The bytes that a worker sends to a server before it needs an answer. WindowFor() is doubled,
  // because the window grows to twice that size on a link with a long round-trip time.
  const uint64_t block = layout.block_elements() * sizeof(float);
  const uint64_t window = 2 * WindowFor(block) * block;
  v1::TrainingJob fewest = WithServers(job);
  const uint32_t others = std::max(fewest.servers().count(), 2u) - 1;
  fewest.mutable_servers()->set_count(std::max(std::min(others, ServersMin(fewest)), 1u));
  ASSIGN_OR_RETURN(const uint64_t slots, ServerSlots(job));
  uint64_t most = 0;
  for (const ServerShare& share : SharesOf(fewest, layout, codecs)) {
    const uint64_t waiting = std::min(share.elements * sizeof(float), window);
    most = std::max(most, MemoryOf(share, slots) + job.workers().count() * waiting);
  }
  return most;
}

absl::StatusOr<uint64_t> NeedsOfAnyWorker(const v1::TrainingJob& job, const CheckedJob& checked,
                                          const CodecPlan& codecs, const std::string& data_dir) {
  ASSIGN_OR_RETURN(const auto test, OpenTestData(job, data_dir));
  const size_t evaluated = test == nullptr ? 0 : checked.model->evaluated_at_a_time();
  ASSIGN_OR_RETURN(
      const WorkerNeeds needs,
      NeedsOfWorker(job, checked, codecs, std::max<size_t>(job.data().batch_size(), evaluated)));
  return needs.all() + (test == nullptr ? 0 : test->bytes());
}

}  // namespace

std::vector<ServerShare> SharesOf(const v1::TrainingJob& job, const BlockLayout& layout,
                                  const CodecPlan& codecs) {
  const uint32_t servers = WithServers(job).servers().count();
  std::vector<ServerShare> shares(servers);
  for (uint32_t block = 0; block < layout.blocks(); ++block) {
    const uint32_t server = layout.ShardOf(block) % servers;
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

bool OnGpu(const v1::TrainingJob& job) {
  return ParseDevice(job.workers().device())->kind == DeviceChoice::Kind::kCuda;
}

absl::StatusOr<WorkerNeeds> NeedsOfWorker(const v1::TrainingJob& job, const CheckedJob& checked,
                                          const CodecPlan& codecs, size_t examples) {
  WorkerNeeds needs;
  const uint64_t steps = ComputeLength(job, checked.steps_per_epoch).steps_per_clock();
  ASSIGN_OR_RETURN(needs.vectors, VectorsOfWorker(job, steps, codecs.compresses_contributions()));
  const uint64_t vector = checked.model->schema().total() * sizeof(float);
  needs.model = needs.vectors * vector;
  needs.of_peers = VectorsOfPeers(job) * vector;
  needs.data = checked.data->dataset().bytes() + BytesAhead(job, *checked.data);
  if (!OnGpu(job)) {
    needs.activations = checked.model->PlanMemory(examples, false).total() * sizeof(float);
  }
  return needs;
}

absl::StatusOr<ProcessBytes> MostBytes(const v1::TrainingJob& job, const CheckedJob& checked,
                                       const std::string& data_dir) {
  const v1::ModelSchema& schema = checked.model->schema();
  const BlockLayout layout =
      BlockLayout::ForModel(schema.total(), ShardsOf(job), job.servers().block_bytes());
  ASSIGN_OR_RETURN(const CodecPlan codecs, PlannedCodecs(job, schema, layout));
  ProcessBytes most;
  ASSIGN_OR_RETURN(most.server, NeedsOfServer(job, layout, codecs));
  ASSIGN_OR_RETURN(most.worker, NeedsOfAnyWorker(job, checked, codecs, data_dir));
  return most;
}

}  // namespace leeway
