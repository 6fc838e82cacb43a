#include "client/calls/peer_calls.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/calls/client_options.h"
#include "client/transport/stream_transport.h"
#include "common/status.h"

namespace leeway {
namespace {

// The time limit of one attempt. A worker answers within 2 s, if only to say for whom it waits.
constexpr Duration kAttemptTimeout = std::chrono::seconds(20);
// The number of calls in flight to each worker. A fetch has no payload, and waits at the other
// worker until the values are there.
constexpr uint32_t kWindow = 64;

CallQueue::Options CallOptions(const PeerCalls::Options& options) {
  const SenderIdentity& own = options.identity;
  CallQueue::Options result{
      .window = kWindow,
      .window_max = kWindow,
      .attempt_timeout = kAttemptTimeout,
      .retry = {},
      .jitter = RandomStream(own.job, RandomPurpose::kRetry, {own.rank, own.incarnation, 1}),
      .on_unreached = options.on_unreached,
      .goes_on = options.goes_on};
  result.retry.total = FromSeconds(options.exchange_seconds);
  return result;
}

std::unique_ptr<Transport> MakeTransport(const PeerCalls::Options& options,
                                         const TransportFactory& transport) {
  const TransportOptions reach{
      .servers = EndpointsOf(options.peers.addresses(), options.peers.local_addresses()),
      .type = options.transport,
      .channels = 1,
      .vector_floats = options.total};
  return transport ? transport(reach) : MakeStreamTransport(reach);
}

}  // namespace

// One call to one worker.
class PeerCalls::PeerOperation : public Operation {
 public:
  PeerOperation(PeerCalls& calls, uint32_t peer, TransportRequest request, Take take, Over over)
      : calls_(calls),
        peer_(peer),
        request_(std::move(request)),
        take_(std::move(take)),
        over_(std::move(over)) {}

  uint32_t size() const override { return 1; }
  uint32_t ServerOf(uint32_t) const override { return peer_; }
  uint32_t Priority(uint32_t) const override { return request_.header.block(); }
  uint64_t Bytes(uint32_t) const override { return request_.payload.size(); }
  std::string Describe(uint32_t) const override {
    return absl::StrCat(request_.kind == BlockMethod::kMeet ? "Meet" : "Fetch", " of block ",
                        request_.header.block(), " at clock ", request_.header.clock(),
                        " by worker ", request_.header.rank(), " (worker ", peer_, ")");
  }
  TransportRequest Request(uint32_t) const override {
    calls_.sent_ += request_.payload.size() + request_.header.ByteSizeLong();
    return request_;
  }
  absl::Status TakeReply(uint32_t, const TransportReply& reply) override {
    calls_.received_ += reply.payload.bytes() + reply.version.ByteSizeLong();
    const uint64_t wanted = request_.reply_bytes / sizeof(float);
    if (reply.payload.size() != wanted) {
      return absl::InvalidArgumentError(absl::StrCat(
          "worker ", peer_, " answered ", reply.payload.size(), " values instead of ", wanted));
    }
    RETURN_IF_ERROR(take_(reply));
    if (reply.still_stands == nullptr || reply.still_stands()) return absl::OkStatus();
    return absl::UnavailableError("the connection ended while the answer was read");
  }
  void OnOver(const absl::Status& status) override { over_(status); }
  // A meeting with a lost worker will not happen, because that worker's next life has other
  // weights.
  bool IsWanted() const override {
    return request_.kind != BlockMethod::kMeet || calls_.IsThere(peer_);
  }

 private:
  PeerCalls& calls_;
  const uint32_t peer_;
  const TransportRequest request_;
  const Take take_;
  const Over over_;
};

PeerCalls::PeerCalls(const Options& options, const TransportFactory& transport)
    : identity_(options.identity),
      total_(options.total),
      peers_(EndpointsOf(options.peers.addresses(), options.peers.local_addresses())),
      queue_(MakeTransport(options, transport),
             static_cast<uint32_t>(options.peers.addresses_size()), CallOptions(options)) {}

PeerCalls::~PeerCalls() = default;

TransportRequest PeerCalls::RequestFor(TransportRequest::Kind kind, const PieceName& name) const {
  TransportRequest request;
  request.kind = kind;
  request.piece = name.piece;
  request.header.set_job(identity_.job);
  request.header.set_generation(identity_.generation);
  request.header.set_rank(identity_.rank);
  request.header.set_incarnation(identity_.incarnation);
  request.header.set_clock(name.clock);
  request.header.set_block(name.block);
  return request;
}

void PeerCalls::Start(uint32_t rank, TransportRequest request, Take take, Over over) {
  queue_.Start(std::make_shared<PeerOperation>(*this, rank, std::move(request), std::move(take),
                                               std::move(over)));
}

void PeerCalls::Fetch(uint32_t rank, const PieceName& name, uint64_t floats, Take take, Over over) {
  TransportRequest request = RequestFor(BlockMethod::kFetch, name);
  request.reply_bytes = floats * sizeof(float);
  Start(rank, std::move(request), std::move(take), std::move(over));
}

void PeerCalls::Meet(uint32_t rank, uint64_t clock, uint32_t block, std::span<const float> weights,
                     Take take, Over over) {
  TransportRequest request = RequestFor(BlockMethod::kMeet, {v1::PIECE_WEIGHTS, clock, block});
  request.header.set_examples(weights.empty() ? 0 : 1);
  request.payload = {reinterpret_cast<const uint8_t*>(weights.data()), weights.size_bytes()};
  request.reply_bytes = weights.size_bytes();
  Start(rank, std::move(request), std::move(take), std::move(over));
}

void PeerCalls::Move(const v1::Peers& peers) {
  const auto endpoints = EndpointsOf(peers.addresses(), peers.local_addresses());
  for (uint32_t i = 0; i < endpoints.size(); ++i) {
    ServerEndpoint to = endpoints[i];
    {
      MutexLock lock(mutex_);
      if (i >= peers_.size() || peers_[i] == to) continue;
      std::swap(peers_[i], to);
    }
    // Calls in flight end, and are made again if they are still wanted. `to` is the old address.
    queue_.MoveServer(i, endpoints[i].address.empty() ? to : endpoints[i]);
  }
}

bool PeerCalls::IsThere(uint32_t rank) const {
  MutexLock lock(mutex_);
  return rank < peers_.size() && !peers_[rank].address.empty();
}

}  // namespace leeway
