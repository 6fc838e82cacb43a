// A worker's state as bytes: it is read as it was written, or not at all.
#include "exchange/kept_state.h"

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "leeway/v1/worker_state.pb.h"
#include "tests/catch.h"

namespace leeway::kept_state {
namespace {

constexpr uint64_t kElements = 3;
// "LWST", the version, and the header's length.
constexpr size_t kPrefix = 12;

KeptState Sample() {
  KeptState state = KeptState::Zeros(
      {.exchange = "delta", .own = {"weights", "answers"}, .slots = {"momentum"}, .residual = true},
      kElements, 2);
  state.updates = 7;
  state.counts = {4, 5};
  float value = 0;
  for (FloatBuffer& vector : state.vectors) {
    for (float& element : vector.span()) element = value += 1;
  }
  return state;
}

// Returns Sample() with a header that `change` has modified.
template <typename Change>
std::string WithHeader(const Change& change) {
  const std::string bytes = SerializeState(Sample());
  uint32_t size = 0;
  std::memcpy(&size, bytes.data() + 8, sizeof(size));
  v1::WorkerStateHeader header;
  REQUIRE(header.ParseFromString(bytes.substr(kPrefix, size)));
  change(header);
  const std::string changed = header.SerializeAsString();
  const auto length = static_cast<uint32_t>(changed.size());
  return bytes.substr(0, 8) + std::string(reinterpret_cast<const char*>(&length), sizeof(length)) +
         changed + bytes.substr(kPrefix + size);
}

bool Refused(const std::string& bytes, uint64_t elements = kElements) {
  return absl::IsInvalidArgument(ReadState(bytes, elements).status());
}

TEST_CASE("a state is what was saved, by name") {
  const KeptState state = Sample();
  const std::string bytes = SerializeState(state);
  const auto read = ReadState(bytes, kElements);
  REQUIRE(read.ok());
  REQUIRE(read->has_value());
  CHECK((*read)->names.exchange == "delta");
  CHECK((*read)->names.own == state.names.own);
  CHECK((*read)->names.slots == state.names.slots);
  CHECK((*read)->names.residual);
  CHECK((*read)->updates == 7);
  CHECK((*read)->counts == state.counts);
  CHECK(SerializeState(**read) == bytes);
  const std::string nothing = SerializeState(KeptState::Zeros({.exchange = "delta"}, kElements));
  CHECK(ReadState(nothing, kElements).ok());
}

TEST_CASE("a state has the loss scale of an fp16 job, and no other than a worker can have") {
  CHECK_FALSE((*ReadState(SerializeState(Sample()), kElements))->loss_scale.has_value());
  KeptState state = Sample();
  for (const StepLossScale scale : {StepLossScale{0, 0}, StepLossScale{24, 1999}}) {
    state.loss_scale = scale;
    const auto read = ReadState(SerializeState(state), kElements);
    REQUIRE(read.ok());
    CHECK((*read)->loss_scale == scale);
  }
  for (const StepLossScale scale : {StepLossScale{25, 0}, StepLossScale{16, 2000}}) {
    state.loss_scale = scale;
    CHECK(Refused(SerializeState(state)));
  }
}

TEST_CASE("states of older builds are known as such, newer ones and other files refused") {
  std::string bytes = SerializeState(Sample());
  for (const uint8_t version : {1, 2}) {
    bytes[4] = static_cast<char>(version);
    const auto read = ReadState(bytes, kElements);
    REQUIRE(read.ok());
    CHECK_FALSE(read->has_value());
  }
  for (const uint8_t version : {0, 4}) {
    bytes[4] = static_cast<char>(version);
    CHECK(Refused(bytes));
  }
  bytes[4] = 3;
  bytes[0] = 'X';
  CHECK(Refused(bytes));
}

TEST_CASE("a state of another model, another length, or of what is no name is refused") {
  const std::string good = WithHeader([](auto&) {});
  REQUIRE(good == SerializeState(Sample()));
  CHECK(Refused(good, kElements + 1));
  for (size_t size = 0; size < good.size(); ++size) CHECK(Refused(good.substr(0, size)));
  CHECK(Refused(good + "x"));
  CHECK(Refused(good + std::string(8, '\0')));

  const auto refused = [](const auto& change) { return Refused(WithHeader(change)); };
  CHECK(refused([](auto& header) { header.clear_exchange(); }));
  CHECK(refused([](auto& header) { header.set_exchange("delta\nall is well"); }));
  CHECK(refused([](auto& header) { header.set_own(0, std::string(33, 'a')); }));
  CHECK(refused([](auto& header) { header.set_slots(0, ""); }));
  CHECK(refused([](auto& header) { header.set_residual(false); }));
  CHECK(refused([](auto& header) { header.set_elements(uint64_t{1} << 62); }));
  CHECK(refused([](auto& header) { header.set_elements(0); }));
  CHECK(refused([](auto& header) { header.set_counts(std::numeric_limits<uint64_t>::max()); }));
  CHECK(refused([](auto& header) { header.set_counts((uint64_t{1} << 61) + 2); }));
  // All of it is there, but an exchange never has this number of vectors, and a header never has
  // this length.
  StateNames many = Sample().names;
  many.slots = std::vector<std::string>(17, "m");
  CHECK(Refused(SerializeState(KeptState::Zeros(many, kElements))));
  many.slots.pop_back();
  CHECK_FALSE(Refused(SerializeState(KeptState::Zeros(many, kElements))));
  const auto unknown = [](auto& header) {
    header.GetReflection()->MutableUnknownFields(&header)->AddLengthDelimited(
        100, std::string(4096, 'x'));
  };
  CHECK(refused(unknown));
}

TEST_CASE("whatever byte of a state is damaged, it is read whole or refused") {
  const std::string good = SerializeState(Sample());
  for (size_t at = 0; at < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
      const auto read = ReadState(bytes, kElements);
      if (!read.ok()) {
        CHECK(absl::IsInvalidArgument(read.status()));
      } else if (read->has_value()) {
        CHECK((*read)->vectors.size() == (*read)->names.vectors());
        for (const FloatBuffer& vector : (*read)->vectors) CHECK(vector.size() == kElements);
      }
    }
  }
}

TEST_CASE("a state with a value that is not finite is refused, in whichever vector") {
  for (size_t vector = 0; vector < 4; ++vector) {
    KeptState state = Sample();
    state.vectors[vector].data()[1] = std::numeric_limits<float>::quiet_NaN();
    CHECK(Refused(SerializeState(state)));
  }
}

// The state that an older build saved for a program: weights, residual and the program's bytes.
std::string Older(std::vector<float> weights, std::vector<float> residual,
                  const std::string& program) {
  std::string bytes = "LWKS";
  const auto add = [&](const auto* values, size_t count) {
    bytes.append(reinterpret_cast<const char*>(values), count * sizeof(*values));
  };
  const uint32_t version = 1;
  const uint64_t counts[] = {weights.size(), residual.size()};
  add(&version, 1);
  add(counts, 2);
  add(weights.data(), weights.size());
  add(residual.data(), residual.size());
  return bytes + program;
}

TEST_CASE("a program's bytes come last") {
  KeptState state = Sample();
  for (const char* program : {"", "slots"}) {
    state.program = program;
    const std::string bytes = SerializeState(state);
    const auto read = ReadState(bytes, kElements);
    REQUIRE(read.ok());
    CHECK((*read)->program == program);
    CHECK((*read)->counts == state.counts);
    CHECK(Refused(bytes + "x"));
    CHECK(Refused(bytes.substr(0, bytes.size() - 1)));
  }
}

TEST_CASE("the state that an older build saved for a program reads, and no part of its vectors") {
  const std::string bytes = Older({1, 2, 3}, {4, 5, 6}, "slots");
  const auto read = ReadState(bytes, kElements);
  REQUIRE(read.ok());
  CHECK((*read)->names.exchange.empty());
  CHECK((*read)->names.own == std::vector<std::string>{"weights"});
  CHECK((*read)->names.residual);
  CHECK((*read)->vectors[0].data()[2] == 3);
  CHECK((*read)->vectors[1].data()[0] == 4);
  CHECK((*read)->program == "slots");
  CHECK(Refused(bytes, 2));
  for (size_t count = 0; count < bytes.size() - 5; ++count) {
    INFO(count);
    CHECK(Refused(bytes.substr(0, count)));
  }
  for (size_t i = 0; i < 8; ++i) {
    std::string other = bytes;
    other[i] = static_cast<char>(other[i] ^ 1);
    CHECK(Refused(other));
  }
}

}  // namespace
}  // namespace leeway::kept_state
