#include "common/wire.h"

#include <cstring>
#include <string>
#include <vector>

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include "leeway/v1/parameter_server.pb.h"
#include "tests/catch.h"

namespace leeway {
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

// Pieces of `size` bytes.
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
  CHECK(odd.status().message() == "PushRequest.payload: 5 bytes are not whole float32 values");
  auto broken = DecodePush(Split("\x0a\xff", 100), header);
  CHECK(broken.status().message() ==
        "PushRequest: not a protobuf message: it breaks off or holds a malformed field");
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

}  // namespace
}  // namespace leeway
