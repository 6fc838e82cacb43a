#include "common/wire/wire.h"

#include <cstring>
#include <string>
#include <vector>

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include "leeway/v1/parameter_server.pb.h"
#include "tests/catch.h"

namespace leeway::wire {
namespace {

std::string Bytes(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  REQUIRE(buffer.Dump(&slices).ok());
  std::string bytes;
  for (const auto& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

// Splits the bytes into pieces of `size` bytes.
grpc::ByteBuffer Split(const std::string& bytes, size_t size) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < bytes.size(); at += size) slices.emplace_back(bytes.substr(at, size));
  return grpc::ByteBuffer(slices.data(), slices.size());
}

v1::ExchangeHeader Header() {
  v1::ExchangeHeader header;
  header.set_job(0x1234567890abcdef);
  header.set_rank(2);
  header.set_clock(300);
  header.set_block(5);
  header.set_examples(64);
  return header;
}

const std::vector<float> kValues = {1.5f, -2.0f, 0.0f, 3e38f, 1e-40f};

TEST_CASE("a push reads as protobuf's own message, and protobuf's as a push") {
  v1::PushRequest message;
  REQUIRE(message.ParseFromString(Bytes(EncodePush(Header(), kValues, nullptr))));
  CHECK(message.header().SerializeAsString() == Header().SerializeAsString());
  REQUIRE(message.payload().size() == kValues.size() * sizeof(float));
  CHECK(std::memcmp(message.payload().data(), kValues.data(), message.payload().size()) == 0);
  CHECK(message.SerializeAsString() == Bytes(EncodePush(Header(), kValues, nullptr)));
}

TEST_CASE("wherever the network cuts a message, the same values are read") {
  const std::string bytes = Bytes(EncodePush(Header(), kValues, nullptr));
  for (size_t size = 1; size <= bytes.size(); ++size) {
    v1::ExchangeHeader header;
    auto payload = DecodePush(Split(bytes, size), header);
    REQUIRE(payload.ok());
    CHECK(header.clock() == 300);
    std::vector<float> values(payload->size());
    payload->CopyTo(values);
    CHECK(values == kValues);
  }
}

TEST_CASE("the payload keeps what it was received in") {
  v1::ExchangeHeader header;
  absl::StatusOr<FloatPayload> payload;
  {
    grpc::ByteBuffer buffer = Split(Bytes(EncodePush(Header(), kValues, nullptr)), 7);
    payload = DecodePush(buffer, header);
  }
  std::vector<float> values(payload->size());
  payload->CopyTo(values);
  CHECK(values == kValues);
}

TEST_CASE("the sender's memory is kept until the message is gone") {
  auto owner = std::make_shared<std::vector<float>>(kValues);
  std::weak_ptr<std::vector<float>> watch = owner;
  auto buffer = EncodePush(Header(), *owner, owner);
  owner.reset();
  CHECK_FALSE(watch.expired());
  buffer.Clear();
  CHECK(watch.expired());
}

TEST_CASE("truncated and mutated messages are errors or other messages, never a crash") {
  const std::string bytes = Bytes(EncodePush(Header(), kValues, nullptr));
  for (size_t length = 0; length < bytes.size(); ++length) {
    v1::ExchangeHeader header;
    auto payload = DecodePush(Split(bytes.substr(0, length), 5), header);
    if (payload.ok()) CHECK(payload->size() < kValues.size());
  }
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string mutated = bytes;
      mutated[at] = static_cast<char>(mutated[at] ^ (1 << bit));
      v1::ExchangeHeader header;
      auto payload = DecodePush(Split(mutated, 9), header);
      if (!payload.ok()) CHECK(payload.status().code() == absl::StatusCode::kInvalidArgument);
    }
  }
}

TEST_CASE("errors name the field") {
  v1::ExchangeHeader header;
  v1::PushRequest message;
  message.set_payload("12345");
  auto odd = DecodePush(Split(message.SerializeAsString(), 100), header);
  CHECK(odd.status().message() ==
        "PushRequest.payload: 5 bytes are not a whole number of float32 values");
  auto broken = DecodePush(Split("\x0a\xff", 100), header);
  CHECK(broken.status().message() ==
        "PushRequest: not a protobuf message: it is truncated, or a field is malformed");
  auto bad_header = DecodePush(Split(std::string("\x0a\x01\xff", 3), 100), header);
  CHECK(bad_header.status().message() == "PushRequest: malformed header");
}

TEST_CASE("an empty message is an empty push, as in protobuf") {
  v1::ExchangeHeader header;
  grpc::Slice nothing;
  auto payload = DecodePush(grpc::ByteBuffer(&nothing, 1), header);
  REQUIRE(payload.ok());
  CHECK(payload->size() == 0);
}

// A frame of three requests: one with a short payload, one without, and one with a payload that is
// long enough to be referred to.
struct SentFrame {
  SentFrame() : large(20'000, 2.5f) {
    for (uint64_t id : {1, 2, 3}) head.add_requests()->set_id(id);
    head.mutable_requests(0)->set_payload_bytes(kValues.size() * sizeof(float));
    head.mutable_requests(2)->set_payload_bytes(large.size() * sizeof(float));
    head.add_released(9);
    FrameWriter writer;
    writer.Append(BytesOf(kValues), nullptr);
    writer.Append({}, nullptr);
    writer.Append(BytesOf(large), nullptr);
    CHECK(writer.bytes() == (kValues.size() + large.size()) * sizeof(float));
    bytes = Bytes(writer.Finish(head));
    CHECK(writer.bytes() == 0);
  }
  static std::span<const uint8_t> BytesOf(const std::vector<float>& values) {
    return {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(float)};
  }
  v1::RequestFrame head;
  std::vector<float> large;
  std::string bytes;
};

TEST_CASE(
    "a frame reads as protobuf's own message, and deals out its payloads however it was cut") {
  const SentFrame sent;
  v1::RequestFrame whole;
  REQUIRE(whole.ParseFromString(sent.bytes));
  CHECK(whole.payload().size() == (kValues.size() + sent.large.size()) * sizeof(float));
  whole.clear_payload();
  CHECK(whole.SerializeAsString() == sent.head.SerializeAsString());
  for (size_t size : {size_t{1}, size_t{7}, size_t{4096}, sent.bytes.size()}) {
    v1::RequestFrame head;
    auto payload = DecodeRequestFrame(Split(sent.bytes, size), head);
    REQUIRE(payload.ok());
    CHECK(head.SerializeAsString() == sent.head.SerializeAsString());
    for (const std::vector<float>& wanted : {kValues, {}, sent.large}) {
      const auto part = payload->Take(wanted.size() * sizeof(float));
      REQUIRE(part.ok());
      std::vector<float> values(part->size());
      part->CopyTo(values);
      CHECK(values == wanted);
    }
    CHECK(payload->left() == 0);
    CHECK_FALSE(payload->Take(1).ok());
  }
}

TEST_CASE("a frame refers to what is long, keeps its owner, and copies what is short") {
  auto owner = std::make_shared<std::vector<float>>(20'000);
  std::weak_ptr<std::vector<float>> watch = owner;
  auto brief = std::make_shared<std::vector<float>>(4);
  std::weak_ptr<std::vector<float>> copied = brief;
  FrameWriter writer;
  writer.Append(SentFrame::BytesOf(*brief), brief);
  writer.Append(SentFrame::BytesOf(*owner), owner);
  owner.reset();
  brief.reset();
  CHECK(copied.expired());
  grpc::ByteBuffer frame = writer.Finish(v1::RequestFrame());
  CHECK_FALSE(watch.expired());
  frame.Clear();
  CHECK(watch.expired());
}

bool IsRefusal(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsDataLoss(status);
}

TEST_CASE("a frame of requests has the payload that they name, and no more than a frame may") {
  v1::RequestFrame head;
  v1::RequestFrame sent;
  sent.add_requests()->set_payload_bytes(12);
  const auto decode = [&](size_t bytes) {
    sent.set_payload(std::string(bytes, 'x'));
    return DecodeRequestFrame(Split(sent.SerializeAsString(), 1 << 16), head).status();
  };
  CHECK(decode(12).ok());
  CHECK(absl::IsDataLoss(decode(8)));
  CHECK(decode(12 + (1 << 20)).ok());
  CHECK(absl::IsInvalidArgument(decode(13 + (1 << 20))));
  for (int i = 1; i < 4096; ++i) sent.add_requests();
  CHECK(decode(12).ok());
  sent.add_requests();
  CHECK(absl::IsInvalidArgument(decode(12)));
}

TEST_CASE("truncated, mutated and bloated frames are errors or other frames, never a crash") {
  const std::string bytes = SentFrame().bytes.substr(0, 200);
  v1::RequestFrame head;
  for (size_t length = 0; length <= bytes.size(); ++length) {
    const auto payload = DecodeRequestFrame(Split(bytes.substr(0, length), 9), head);
    if (!payload.ok()) CHECK(IsRefusal(payload.status()));
  }
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string mutated = bytes;
      mutated[at] = static_cast<char>(mutated[at] ^ (1 << bit));
      const auto payload = DecodeRequestFrame(Split(mutated, 11), head);
      if (!payload.ok()) CHECK(IsRefusal(payload.status()));
    }
  }
  // More than any frame's small fields need.
  v1::RequestFrame bloated;
  for (int i = 0; i < 600'000; ++i) bloated.add_released(1 << 20);
  CHECK_FALSE(DecodeRequestFrame(Split(bloated.SerializeAsString(), 1 << 16), head).ok());
}

}  // namespace
}  // namespace leeway::wire
