#include "client/calls/parameter_client.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "client/calls/operations.h"
#include "client/transport/stream_transport.h"
#include "common/counted.h"
#include "common/status.h"

namespace leeway {
namespace {

// The time limit of one attempt of a call. These 20 s cover the time for which a server holds a
// call, and a slow moment of the machine. The time to send a full window over the slowest usable
// link is added.
constexpr double kAttemptSeconds = 20;
constexpr double kSlowestBytesPerSecond = 1 << 20;
// The limit of the window's growth. It suffices for small blocks on a long link.
constexpr uint32_t kWindowMax = 512;

CallQueue::Options QueueOptions(const ParameterClientOptions& options) {
  const uint64_t block_bytes = options.block_elements * sizeof(float);
  const uint32_t window = options.window > 0 ? options.window : WindowFor(block_bytes);
  const double window_bytes = static_cast<double>(window) * static_cast<double>(block_bytes);
  CallQueue::Options result{
      .window = window,
      .window_max = options.window > 0 ? window : kWindowMax,
      .attempt_timeout = FromSeconds(kAttemptSeconds + window_bytes / kSlowestBytesPerSecond),
      .retry = {},
      .jitter =
          RandomStream(options.job, RandomPurpose::kRetry, {options.rank, options.incarnation}),
      .on_unreached = options.on_unreached,
      .goes_on = options.goes_on};
  result.retry.total = FromSeconds(options.exchange_seconds);
  return result;
}

SenderIdentity IdentityOf(const ParameterClientOptions& options) {
  return {options.job, options.generation, options.rank, options.incarnation};
}

}  // namespace

uint32_t WindowFor(uint64_t block_bytes) {
  constexpr uint64_t kFewest = 8, kMost = 64, kBytes = 4 << 20;
  return static_cast<uint32_t>(std::clamp(kBytes / block_bytes, kFewest, kMost));
}

absl::StatusOr<std::unique_ptr<ParameterClient>> ParameterClient::Open(
    const ParameterClientOptions& options, const TransportFactory& transport) {
  const auto servers = static_cast<uint32_t>(options.servers.size());
  ASSIGN_OR_RETURN(BlockLayout layout, BlockLayout::FromWire(options.total, servers,
                                                             options.block_elements, options.cuts));
  if (!(options.exchange_seconds > 0)) {
    return absl::InvalidArgumentError(
        "opening a parameter client: exchange_seconds must be above 0");
  }
  const TransportOptions reach{.servers = options.servers,
                               .type = options.transport,
                               .channels = options.channels,
                               .vector_floats = options.total};
  auto made = transport ? transport(reach) : MakeStreamTransport(reach);
  return std::unique_ptr<ParameterClient>(
      new ParameterClient(options, std::move(layout), std::move(made)));
}

ParameterClient::ParameterClient(const ParameterClientOptions& options, BlockLayout layout,
                                 std::unique_ptr<Transport> transport)
    : options_(options),
      layout_(std::move(layout)),
      codecs_(layout_, options.codecs, options.weights_stay),
      queue_(std::move(transport), layout_.shards(), QueueOptions(options)),
      servers_(options.servers) {}

ParameterClient::~ParameterClient() = default;

void ParameterClient::MoveServers(const std::vector<ServerEndpoint>& servers) {
  MutexLock lock(servers_mutex_);
  for (uint32_t i = 0; i < servers_.size() && i < servers.size(); ++i) {
    if (servers_[i] == servers[i]) continue;
    servers_[i] = servers[i];
    queue_.MoveServer(i, servers[i]);
  }
}

FloatBuffer ParameterClient::MakeVector() { return queue_.transport().MakeVector(layout_.total()); }

absl::StatusOr<ParameterClient::Attachment> ParameterClient::Attach() {
  auto operation = std::make_shared<AttachOperation>(IdentityOf(options_), layout_.shards());
  RETURN_IF_ERROR(queue_.Wait(queue_.Start(operation), Time::max()));
  const Attachment attachment{operation->clock(), operation->needs_initialize(),
                              operation->counted()};
  if (attachment.clock == std::numeric_limits<uint64_t>::max()) {
    return absl::FailedPreconditionError("attaching: no server holds a block of the model");
  }
  return attachment;
}

absl::Status ParameterClient::Initialize(std::span<const float> weights) {
  return Wait(Start({.method = BlockMethod::kInitialize,
                     .blocks = kAllBlocks,
                     .contribution = weights}))
      .status();
}

ParameterClient::Ticket ParameterClient::Push(uint64_t clock, uint64_t examples,
                                              std::span<const float> contribution,
                                              BlockRange blocks, ContributionRates rates) {
  return Start({.method = BlockMethod::kPush,
                .blocks = blocks,
                .clock = clock,
                .examples = examples,
                .contribution = contribution,
                .rates = std::move(rates)});
}

ParameterClient::Ticket ParameterClient::Pull(uint64_t clock, std::span<float> weights,
                                              BlockRange blocks) {
  return Start(
      {.method = BlockMethod::kPull, .blocks = blocks, .clock = clock, .weights = weights});
}

ParameterClient::Ticket ParameterClient::PullLatest(std::span<float> weights, BlockRange blocks) {
  return Start({.method = BlockMethod::kPull,
                .blocks = blocks,
                .reads = ReadKind::kLatest,
                .weights = weights});
}

ParameterClient::Ticket ParameterClient::PullAverage(std::span<float> weights) {
  return Start({.method = BlockMethod::kPull,
                .blocks = kAllBlocks,
                .reads = ReadKind::kAverage,
                .weights = weights});
}

ParameterClient::Ticket ParameterClient::PushPull(uint64_t clock, uint64_t examples,
                                                  std::span<const float> contribution,
                                                  std::span<float> weights, BlockRange blocks,
                                                  ContributionRates rates) {
  return Start({.method = BlockMethod::kPushPull,
                .blocks = blocks,
                .clock = clock,
                .examples = examples,
                .contribution = contribution,
                .weights = weights,
                .rates = std::move(rates)});
}

ParameterClient::Ticket ParameterClient::PushPullCombined(uint64_t clock, std::span<float> weights,
                                                          BlockRange blocks) {
  return Start({.method = BlockMethod::kPushPull,
                .blocks = blocks,
                .clock = clock,
                .combined = true,
                .weights = weights});
}

void ParameterClient::PushPullOfAll(uint64_t clock, uint64_t examples,
                                    std::span<const float> contribution, std::span<float> weights,
                                    BlockRange blocks, ContributionRates rates, Over over) {
  Start({.method = BlockMethod::kPushPull,
         .blocks = blocks,
         .clock = clock,
         .examples = examples,
         .of_all = true,
         .contribution = contribution,
         .weights = weights,
         .rates = std::move(rates),
         .over = std::move(over)});
}

void ParameterClient::PullThen(uint64_t clock, std::span<float> weights, BlockRange blocks,
                               Over over) {
  Start({.method = BlockMethod::kPull,
         .blocks = blocks,
         .clock = clock,
         .weights = weights,
         .over = std::move(over)});
}

ParameterClient::Ticket ParameterClient::Start(BlockExchange exchange) {
  Ticket ticket;
  if (exchange.blocks == kAllBlocks) exchange.blocks = {0, layout_.blocks()};
  const uint64_t end = uint64_t{exchange.blocks.first} + exchange.blocks.count;
  const bool sized = (!exchange.sends() || exchange.contribution.size() == layout_.total()) &&
                     (!exchange.receives() || exchange.weights.size() == layout_.total());
  if (end > layout_.blocks()) {
    ticket.refused_ = absl::InvalidArgumentError(
        absl::StrCat(MethodName(exchange.method), " of ", Counted(exchange.blocks.count, "block"),
                     " from block ", exchange.blocks.first, ": the model has ",
                     Counted(layout_.blocks(), "block"), ", 0 to ", layout_.blocks() - 1));
  } else if (!sized) {
    ticket.refused_ = absl::InvalidArgumentError(
        absl::StrCat(MethodName(exchange.method), ": vectors must have all ", layout_.total(),
                     " floats of the model"));
  } else {
    ticket.operation_ =
        std::make_shared<BlocksOperation>(IdentityOf(options_), layout_, exchange, codecs_);
    ticket.calls_ = queue_.Start(ticket.operation_);
  }
  return ticket;
}

void ParameterClient::Settle(const Ticket& ticket) { queue_.Settle(ticket.calls_); }

bool ParameterClient::IsOver(const Ticket& ticket) const {
  return !ticket.refused_.ok() || queue_.IsOver(ticket.calls_);
}

absl::StatusOr<ParameterClient::Result> ParameterClient::Wait(const Ticket& ticket, Time deadline) {
  RETURN_IF_ERROR(ticket.refused_);
  RETURN_IF_ERROR(queue_.Wait(ticket.calls_, deadline));
  return Result{ticket.operation_->staleness(), ticket.operation_->version()};
}

}  // namespace leeway
