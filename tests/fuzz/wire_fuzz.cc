// The data plane's bytes. A frame of requests goes through the decoder into a small shard, as in
// StreamSession. A reply goes through the decoder into the codecs, as in a worker.
#include <cmath>
#include <list>
#include <memory>
#include <vector>

#include <google/protobuf/stubs/common.h>
#include <grpcpp/support/byte_buffer.h>
#if GOOGLE_PROTOBUF_VERSION < 4022000
#include <google/protobuf/stubs/logging.h>
#else
#include "absl/log/globals.h"
#endif

#include "common/codec/encoded.h"
#include "common/wire/wire.h"
#include "server/shard/shard.h"
#include "tests/fuzz/fuzz_input.h"

namespace leeway::wire {
namespace {

// Three blocks, two of them on this server.
constexpr uint64_t kTotal = 40;
constexpr uint64_t kBlockElements = 16;

// Returns the bytes in slices of `slice` bytes (0: one slice), each in memory of its own.
grpc::ByteBuffer BufferOf(std::span<const uint8_t> bytes, size_t slice) {
  std::vector<grpc::Slice> slices;
  const size_t step = slice == 0 ? bytes.size() : slice;
  for (size_t at = 0; at < bytes.size(); at += step) {
    slices.emplace_back(bytes.data() + at, std::min(step, bytes.size() - at));
  }
  return {slices.data(), slices.size()};
}

void PromiseInvalid(const absl::Status& status) {
  Promise(status.ok() || absl::IsInvalidArgument(status), "bad bytes are INVALID_ARGUMENT");
}

class NoCuts : public CutListener {
 public:
  void OnHeld(uint64_t, HeldBlock block) override {
    Promise(!block.values.weights.span().empty(), "a held block has values");
  }
};

void SetCodec(uint32_t choice, v1::Codec& codec) {
  switch (choice) {
    case 0:
      codec.mutable_none();
      break;
    case 1:
      codec.mutable_int8();
      break;
    case 2:
      codec.mutable_fp16();
      break;
    case 3:
      codec.mutable_top_k()->set_share(0.25);
      break;
    default:
      codec.mutable_sign();
      break;
  }
}

Shard::Options OptionsOf(FuzzInput& input) {
  Shard::Options options;
  v1::TrainingJob& job = options.job;
  const uint8_t shape = input.Byte();
  job.mutable_consistency()->set_mode(static_cast<v1::ConsistencyMode>(shape % 3));
  job.mutable_consistency()->set_staleness(1);
  if (shape & 0x80) {
    job.mutable_exchange()->mutable_elastic()->set_alpha(0.5);
  } else {
    job.mutable_exchange()->mutable_gradient();
  }
  if (shape & 0x40) {
    job.mutable_update()->mutable_adam();
  } else {
    job.mutable_update()->mutable_sgd();
  }
  job.mutable_update()->set_learning_rate(1);
  job.mutable_data()->set_batch_size(10);
  job.mutable_workers()->set_count(1 + (shape >> 3 & 1));
  job.mutable_servers()->set_count(2);
  job.mutable_compression()->mutable_contributions()->mutable_none();
  SetCodec(input.Below(5), *job.mutable_compression()->mutable_weights());
  options.schema.set_total(kTotal);
  options.schema.set_trained(kTotal - 4);
  v1::TensorSpec& tensor = *options.schema.add_tensors();
  tensor.set_name("dense/weight");
  tensor.add_shape(kTotal);
  options.length.set_steps_per_clock(1);
  options.length.set_clocks(10);
  options.length.set_steps_per_epoch(10);
  options.block_elements = kBlockElements;
  options.cut_every = shape & 0x20 ? 2 : 0;
  return options;
}

// A shard, which must answer each request exactly once.
class Server {
 public:
  explicit Server(const Shard::Options& options) : shard_(*Shard::Make(options, &cuts_)) {}

  void Ask(const v1::StreamRequest& request, FloatPayload payload) {
    int& answers = answers_.emplace_back(0);
    const v1::ExchangeHeader& header = request.header();
    Shard::Done done = [this, &answers, &header](absl::StatusOr<BlockReading> reading) {
      Promise(++answers == 1, "a request is answered once");
      if (reading.ok()) PromiseReading(header, *reading);
    };
    switch (request.method()) {
      case v1::EXCHANGE_METHOD_PUSH:
      case v1::EXCHANGE_METHOD_PUSH_PULL:
        return shard_->Contribute(header, std::move(payload),
                                  request.method() == v1::EXCHANGE_METHOD_PUSH_PULL, Time(),
                                  std::move(done));
      case v1::EXCHANGE_METHOD_PULL:
        return shard_->Read(header, ReadKindOf(request), Time(), std::move(done));
      case v1::EXCHANGE_METHOD_INITIALIZE:
        return shard_->Initialize(header, payload, std::move(done));
      default:
        return done(absl::InvalidArgumentError("method"));
    }
  }

  void Close() {
    shard_->Close();
    for (const int answers : answers_) Promise(answers == 1, "a closed server owes nobody");
    Promise(shard_->updates_applied() <= answers_.size(), "each update has its contribution");
    for (const uint32_t block : {0u, 2u}) {
      const SharedFloats weights = shard_->store().CurrentWeights(block);
      if (weights) PromiseFinite(weights.span());
    }
  }

 private:
  static void PromiseFinite(std::span<const float> values) {
    for (const float value : values) Promise(std::isfinite(value), "weights are finite");
  }
  static void PromiseReading(const v1::ExchangeHeader& asked, const BlockReading& reading) {
    if (!reading.has_payload()) return;
    Promise(reading.header.block() == asked.block(), "the block asked for is answered");
    if (reading.encoded != nullptr) {
      const auto* bytes = reinterpret_cast<const uint8_t*>(reading.encoded->data());
      std::vector<float> values(asked.block() == 2 ? kTotal % kBlockElements : kBlockElements);
      PromiseOk(Decode(reading.header.encoding(), {bytes, reading.encoded->size()}, values),
                "an encoded answer can be read");
    } else {
      PromiseFinite(reading.values.span());
    }
  }

  NoCuts cuts_;
  std::unique_ptr<Shard> shard_;
  // A list, because the answers must not move.
  std::list<int> answers_;
};

void Requests(FuzzInput& input) {
  const Shard::Options options = OptionsOf(input);
  const uint8_t slice = input.Byte();
  v1::RequestFrame head;
  auto frame = DecodeRequestFrame(BufferOf(input.Rest(), slice), head);
  if (!absl::IsDataLoss(frame.status())) PromiseInvalid(frame.status());
  if (!frame.ok()) return;
  Server server(options);
  for (const v1::StreamRequest& request : head.requests()) {
    auto payload = frame->Take(request.payload_bytes());
    Promise(payload.ok(), "a frame has what its requests say");
    server.Ask(request, *std::move(payload));
  }
  server.Close();
}

void PromiseDecodes(v1::Encoding encoding, const FloatPayload& payload, uint32_t count) {
  std::vector<float> values(count);
  if (encoding == v1::ENCODING_RAW && payload.size() == count) payload.CopyTo(values);
  const auto opened = EncodedValues::Open(encoding, payload.owner(), payload.pieces(), count);
  PromiseInvalid(opened.status());
  if (!opened.ok()) return;
  (*opened)->Read(0, values);
  for (const float value : values) Promise(std::isfinite(value), "decoded values are finite");
}

void Replies(FuzzInput& input) {
  const uint32_t count = input.Byte();
  const uint8_t slice = input.Byte();
  v1::ReplyFrame head;
  auto frame = DecodeReplyFrame(BufferOf(input.Rest(), slice), head);
  PromiseInvalid(frame.status());
  if (!frame.ok()) return;
  for (const v1::StreamReply& reply : head.replies()) {
    const uint64_t left = frame->left();
    const auto payload = frame->Take(reply.payload_bytes());
    Promise(payload.ok() == (reply.payload_bytes() <= left), "what is there can be taken");
    if (!payload.ok()) break;
    PromiseDecodes(reply.version().encoding(), *payload, count);
  }
}

void Push(FuzzInput& input) {
  const uint32_t count = input.Byte();
  const uint8_t slice = input.Byte();
  v1::ExchangeHeader header;
  const auto payload = DecodePush(BufferOf(input.Rest(), slice), header);
  PromiseInvalid(payload.status());
  if (payload.ok()) PromiseDecodes(header.encoding(), *payload, count);
}

void Pull(FuzzInput& input) {
  const uint32_t count = input.Byte();
  const uint8_t slice = input.Byte();
  v1::VersionHeader header;
  const auto payload = DecodePullReply(BufferOf(input.Rest(), slice), header);
  PromiseInvalid(payload.status());
  if (payload.ok()) PromiseDecodes(header.encoding(), *payload, count);
}

}  // namespace
FUZZ_TARGET(wire) {
  // Without this, protobuf would print a line for each string that is not UTF-8.
#if GOOGLE_PROTOBUF_VERSION < 4022000
  google::protobuf::SetLogHandler(nullptr);
#else
  absl::SetMinLogLevel(absl::LogSeverityAtLeast::kFatal);
#endif
  constexpr void (*kMessages[])(FuzzInput&) = {Requests, Replies, Push, Pull};
  kMessages[input.Below(4)](input);
}

}  // namespace leeway::wire
