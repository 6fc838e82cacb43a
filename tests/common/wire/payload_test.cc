#include "common/wire/payload.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "tests/catch.h"

namespace leeway::payload {
namespace {

std::vector<float> Values(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = 1.5f * static_cast<float>(i) - 3.0f;
  return values;
}

// Splits the values' bytes into pieces that end at `cuts`, each piece in memory of its own, `shift`
// bytes off alignment.
FloatPayload Split(const std::vector<float>& values, std::vector<size_t> cuts, size_t shift) {
  cuts.push_back(values.size() * sizeof(float));
  auto memory = std::make_shared<std::vector<std::vector<uint8_t>>>();
  FloatPayload::PieceList pieces;
  size_t begin = 0;
  for (size_t cut : cuts) {
    memory->emplace_back(shift + cut - begin);
    uint8_t* bytes = memory->back().data() + shift;
    if (cut > begin) {
      std::memcpy(bytes, reinterpret_cast<const uint8_t*>(values.data()) + begin, cut - begin);
    }
    pieces.emplace_back(bytes, cut - begin);
    begin = cut;
  }
  return FloatPayload(memory, std::move(pieces));
}

// Checks that every tile of the payload, and the whole of it, has these values.
void CheckReads(const FloatPayload& payload, const std::vector<float>& values) {
  REQUIRE(payload.size() == values.size());
  std::vector<float> whole(values.size());
  payload.CopyTo(whole);
  REQUIRE(whole == values);
  std::vector<float> scratch(values.size());
  for (size_t offset = 0; offset <= values.size(); ++offset) {
    for (size_t count = 0; offset + count <= values.size(); ++count) {
      const float* tile = payload.Tile(offset, count, scratch.data());
      REQUIRE(reinterpret_cast<uintptr_t>(tile) % alignof(float) == 0);
      REQUIRE(std::memcmp(tile, values.data() + offset, count * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("every split of a payload in three, at every alignment, gives the same floats") {
  const std::vector<float> values = Values(5);
  const size_t bytes = values.size() * sizeof(float);
  for (size_t shift = 0; shift < 4; ++shift) {
    for (size_t a = 0; a <= bytes; ++a) {
      for (size_t b = a; b <= bytes; ++b) CheckReads(Split(values, {a, b}, shift), values);
    }
  }
}

TEST_CASE("a payload of one byte a piece gives the same floats") {
  const std::vector<float> values = Values(6);
  std::vector<size_t> cuts;
  for (size_t i = 1; i < values.size() * sizeof(float); ++i) cuts.push_back(i);
  CheckReads(Split(values, cuts, 1), values);
}

TEST_CASE("a reader gives each run of whole floats where it lies, and the split ones copied") {
  const std::vector<float> values = Values(9);
  const auto address = [](const uint8_t* bytes) { return reinterpret_cast<uintptr_t>(bytes); };
  for (size_t shift = 0; shift < 4; ++shift) {
    for (size_t cut = 1; cut < 36; ++cut) {
      const FloatPayload payload = Split(values, {cut}, shift);
      PayloadReader reader(payload);
      float scratch[9];
      // Forwards, and then from the end back to the start.
      for (size_t offset : {0, 1, 2, 3, 4, 5, 6, 7, 8, 3, 0}) {
        const size_t end = offset * 4 < cut ? cut / 4 : 9;
        const size_t whole = end > offset ? end - offset : 0;
        CAPTURE(shift, cut, offset);
        REQUIRE(reader.Contiguous(offset) == whole);
        const size_t count = std::max<size_t>(whole, 1);
        const uint8_t* bytes = reader.Bytes(offset, count, scratch);
        REQUIRE(std::memcmp(bytes, values.data() + offset, count * sizeof(float)) == 0);
        const bool copied = address(bytes) == reinterpret_cast<uintptr_t>(scratch);
        REQUIRE(copied == (whole == 0));
      }
    }
  }
}

TEST_CASE("an empty payload and empty pieces are legal") {
  REQUIRE(FloatPayload().size() == 0);
  REQUIRE(FloatPayload().FirstNonFinite() == 0);
  CheckReads(Split(Values(3), {0, 0, 5, 5, 12, 12}, 0), Values(3));
}

TEST_CASE("contiguous aligned values are read where they lie") {
  const std::vector<float> values = Values(8);
  const FloatPayload payload = FloatPayload::Of(values);
  float scratch[8];
  REQUIRE(payload.Tile(2, 4, scratch) == values.data() + 2);
}

TEST_CASE("a payload of a source reads what the source gives") {
  class Squares : public FloatSource {
   public:
    size_t size() const override { return 3000; }
    void Read(size_t offset, std::span<float> out) const override {
      for (float& value : out) value = static_cast<float>(offset * offset), ++offset;
    }
  };
  const auto source = std::make_shared<Squares>();
  std::vector<float> expected(source->size());
  source->Read(0, expected);
  const FloatPayload payload(source);
  CheckReads(payload, expected);
  REQUIRE(payload.FirstNonFinite() == payload.size());
  PayloadReader reader(payload);
  float scratch[100];
  REQUIRE(reader.Contiguous(2900) == 100);
  REQUIRE(reader.Bytes(2900, 100, scratch) == reinterpret_cast<const uint8_t*>(scratch));
  REQUIRE(scratch[99] == expected[2999]);
}

TEST_CASE("a payload keeps its owner alive") {
  auto owner = std::make_shared<std::vector<float>>(Values(4));
  const std::weak_ptr<std::vector<float>> watch = owner;
  {
    const FloatPayload payload = FloatPayload::Of(*owner, owner);
    owner.reset();
    REQUIRE_FALSE(watch.expired());
    CheckReads(payload, Values(4));
  }
  REQUIRE(watch.expired());
}

TEST_CASE("the first value that is not finite is found at every index, of every kind") {
  using Limits = std::numeric_limits<float>;
  const float bad[] = {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(),
                       std::bit_cast<float>(0x7f800001u)};
  std::vector<float> values = Values(2500);
  REQUIRE(FloatPayload::Of(values).FirstNonFinite() == values.size());
  for (size_t i = 0; i < values.size(); i += i < 30 || i > 1000 ? 1 : 7) {
    const float good = std::exchange(values[i], bad[i % 4]);
    REQUIRE(FloatPayload::Of(values).FirstNonFinite() == i);
    REQUIRE(Split(values, {i * 4 + 1}, 1).FirstNonFinite() == i);
    values[i] = good;
  }
}

TEST_CASE("the largest and the smallest finite floats count as finite") {
  using Limits = std::numeric_limits<float>;
  const std::vector<float> values = {Limits::max(), Limits::lowest(), Limits::denorm_min(), -0.0f};
  REQUIRE(FloatPayload::Of(values).FirstNonFinite() == 4);
}

}  // namespace
}  // namespace leeway::payload
