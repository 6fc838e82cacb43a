#include "bench/bench_server.h"

#include <utility>

#include <grpcpp/server.h>

#include "absl/strings/str_cat.h"
#include "bench/base/bench_job.h"
#include "common/rpc/channel.h"
#include "common/rpc/host.h"
#include "common/rpc/local_sockets.h"
#include "common/service/server_queue.h"
#include "common/status.h"
#include "config/job.h"
#include "server/service/parameter_service.h"
#include "server/shard/shard.h"

namespace leeway {
namespace {

constexpr uint64_t kJobId = 0x6c65657761790001;
constexpr uint64_t kArenaBytesAtLeast = 64 << 20;

class NoCuts : public CutListener {
 public:
  void OnHeld(uint64_t, HeldBlock) override {}
};

class DataPlane : public BenchServer {
 public:
  static absl::StatusOr<std::unique_ptr<DataPlane>> Start(const Shard::Options& options) {
    auto plane = std::make_unique<DataPlane>();
    ASSIGN_OR_RETURN(plane->shard_, Shard::Make(options, &plane->cuts_));
    plane->service_.table().Serve(kJobId, 0, plane->shard_);
    grpc::ServerBuilder builder;
    PrepareServer({.address = "127.0.0.1:0"}, builder, &plane->port_);
    AddLocalPort(plane->local_, builder);
    builder.RegisterService(&plane->service_);
    plane->queue_ = std::make_unique<ServerQueue>(builder);
    plane->server_ = builder.BuildAndStart();
    if (plane->server_ == nullptr) return absl::UnavailableError("the bench server cannot listen");
    plane->service_.Await(plane->queue_.get());
    plane->queue_->Start();
    return plane;
  }
  ~DataPlane() override {
    if (server_ == nullptr) return;
    service_.Close();
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
    queue_.reset();
  }

  BenchServerAddress address() const override {
    return {.tcp = absl::StrCat("127.0.0.1:", port_), .local = local_};
  }

 private:
  const std::string local_ = NewLocalAddress();
  int port_ = 0;
  // The order of the fields is the order in which they are constructed.
  NoCuts cuts_;
  std::shared_ptr<Shard> shard_;
  ParameterService service_;
  std::unique_ptr<ServerQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
};

v1::ModelSchema SchemaOf(const TransferPlan& plan) {
  v1::ModelSchema schema;
  schema.set_total(plan.total_floats());
  schema.set_trained(plan.total_floats());
  return schema;
}

}  // namespace

std::string ReplyCodec(const std::string& codec) {
  return codec == "top_k" || codec == "sign" ? "none" : codec;
}

absl::StatusOr<v1::TrainingJob> MakeBenchJob(Wire wire, const std::string& codec) {
  const std::string yaml = BenchJobYaml(
      {.mode = "async", .wire = wire, .contributions = codec, .weights = ReplyCodec(codec)});
  return ParseJob(yaml, "the bench's job", {});
}

absl::StatusOr<std::unique_ptr<BenchServer>> StartBenchServer(const v1::TrainingJob& job,
                                                              const TransferPlan& plan) {
  Shard::Options options;
  options.job = job;
  options.schema = SchemaOf(plan);
  options.length.set_steps_per_clock(1);
  options.length.set_clocks(job.stop().clocks());
  options.block_elements = plan.message_floats();
  // The memory has room for two versions, and for versions that are being read. Unused memory costs
  // nothing.
  ASSIGN_OR_RETURN(options.memory,
                   SharedArena::Create(8 * plan.total_bytes() + kArenaBytesAtLeast));
  return DataPlane::Start(options);
}

absl::StatusOr<std::unique_ptr<ParameterClient>> OpenBenchClient(const v1::TrainingJob& job,
                                                                 const TransferPlan& plan,
                                                                 const BenchServerAddress& server) {
  ParameterClientOptions options;
  options.servers = {ServerEndpoint(server.tcp, server.local, HostIdentity())};
  options.transport = job.transport().type();
  options.channels = job.transport().channels();
  options.job = kJobId;
  options.incarnation = 1;
  options.total = plan.total_floats();
  options.block_elements = plan.message_floats();
  options.window = plan.window;
  ASSIGN_OR_RETURN(const BlockLayout layout,
                   BlockLayout::FromWire(options.total, 1, options.block_elements));
  ASSIGN_OR_RETURN(options.codecs, CodecPlan::Of(job, SchemaOf(plan), layout));
  ASSIGN_OR_RETURN(std::unique_ptr<ParameterClient> client, ParameterClient::Open(options));
  RETURN_IF_ERROR(client->Attach().status());
  const FloatBuffer zeros = client->MakeVector();
  RETURN_IF_ERROR(client->Initialize(zeros.span()));
  return client;
}

}  // namespace leeway
