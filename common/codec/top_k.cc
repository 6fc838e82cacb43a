// top_k: only the values of largest magnitude (Aji and Heafield, "Sparse communication for
// distributed gradient descent", EMNLP 2017; Stich, Cordonnier, Jaggi, "Sparsified SGD with
// memory", NeurIPS 2018): ceil(share * n) of the n values. The selection is exact. Of equal
// magnitudes the first ones are sent.
//
// Bytes: uint32 number of entries k, uint8 Rice parameter, the entries' indices
// (common/codec/rice.h), then k values in bf16. If 1 % of the values are sent, at random indices,
// an entry takes 1.02 + 2 bytes, so the payload has 0.0076 of the bytes of float32. The residual
// also keeps the precision that the sent values lose in bf16.
#include <cmath>
#include <cstring>

#include "common/codec/bf16.h"
#include "common/codec/codecs.h"
#include "common/codec/group_codec.h"
#include "common/codec/rice.h"
#include "common/codec/select.h"
#include "common/status.h"

namespace leeway {
namespace {

constexpr size_t kHeader = sizeof(uint32_t) + sizeof(uint8_t);

class TopKCodec final : public Codec {
 public:
  explicit TopKCodec(double share) : share_(share) {}

  v1::Encoding encoding() const override { return v1::ENCODING_TOP_K; }

  size_t MaxBytes(size_t count) const override {
    if (count == 0) return kHeader;
    const size_t k = Entries(count);
    return kHeader + RiceBytesMax(count, k, UsualRiceParameter(count, k)) + k * sizeof(uint16_t);
  }

  size_t Encode(std::span<const float> values, std::span<float> residual,
                std::span<uint8_t> out) const override {
    std::span<const float> sum = values;
    if (!residual.empty()) {
      const uint32_t top =
          AddResidual(values.data(), residual.data(), values.size(), residual.data());
      if (top > kBf16Limit) Hold(residual.data(), residual.size(), kBf16Limit, residual.data());
      sum = residual;
    }
    const std::vector<uint32_t> indices =
        sum.empty() ? std::vector<uint32_t>() : LargestMagnitudes(sum, Entries(sum.size()));
    const uint32_t k = static_cast<uint32_t>(indices.size());
    const uint8_t parameter =
        k == 0 ? 0 : static_cast<uint8_t>(BestRiceParameter(indices, sum.size()));
    std::memcpy(out.data(), &k, sizeof(k));
    out[sizeof(k)] = parameter;
    size_t size = kHeader + WriteRice(indices, parameter, out.data() + kHeader);
    for (const uint32_t index : indices) {
      float value;
      Hold(&sum[index], 1, kBf16Limit, &value);
      const uint16_t half = ToBf16(value);
      std::memcpy(out.data() + size, &half, sizeof(half));
      size += sizeof(half);
      if (!residual.empty()) residual[index] -= FromBf16(half);
    }
    return size;
  }

 private:
  // Returns the number of entries for `count` > 0 values. The rounding ignores the error of the
  // share's binary fraction, so that 0.01 of 700 values are exactly 7.
  size_t Entries(size_t count) const {
    const double exact = share_ * static_cast<double>(count);
    const size_t k = static_cast<size_t>(std::ceil(exact - 1e-9 * exact));
    return std::clamp<size_t>(k, 1, count);
  }

  const double share_;
};

class TopKValues final : public EncodedValues {
 public:
  TopKValues(std::vector<uint32_t> indices, std::vector<uint16_t> values, size_t count)
      : indices_(std::move(indices)), values_(std::move(values)), count_(count) {}

  size_t size() const override { return count_; }

  void Read(size_t offset, std::span<float> out) const override {
    std::fill(out.begin(), out.end(), 0.0f);
    const size_t end = offset + out.size();
    size_t i = std::lower_bound(indices_.begin(), indices_.end(), offset) - indices_.begin();
    for (; i < indices_.size() && indices_[i] < end; ++i) {
      out[indices_[i] - offset] = FromBf16(values_[i]);
    }
  }

  void AddTo(std::span<float> out) const override {
    for (size_t i = 0; i < indices_.size() && indices_[i] < out.size(); ++i) {
      out[indices_[i]] += FromBf16(values_[i]);
    }
  }

 private:
  const std::vector<uint32_t> indices_;
  // The values of the entries, in bf16.
  const std::vector<uint16_t> values_;
  const size_t count_;
};

absl::Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("payload: top_k: ", what));
}

// Reads the entries of a whole payload.
OpenedValues Parse(std::span<const uint8_t> bytes, size_t count) {
  if (bytes.size() < kHeader)
    return Wrong(absl::StrCat(bytes.size(), " bytes are too few for the header"));
  uint32_t k;
  std::memcpy(&k, bytes.data(), sizeof(k));
  const uint8_t parameter = bytes[sizeof(k)];
  if (k > count) return Wrong(absl::StrCat(k, " entries are too many for ", count, " values"));
  if (parameter > kRiceParameterMax)
    return Wrong(
        absl::StrCat("the Rice parameter is ", parameter, "; the maximum is ", kRiceParameterMax));
  const size_t values_size = size_t{k} * sizeof(uint16_t);
  if (bytes.size() - kHeader < values_size) {
    return Wrong(absl::StrCat(k, " entries do not fit in ", bytes.size(), " bytes"));
  }
  const std::span<const uint8_t> places =
      bytes.subspan(kHeader, bytes.size() - kHeader - values_size);
  std::vector<uint32_t> indices(k);
  absl::StatusOr<size_t> used = ReadRice(places, parameter, count, indices);
  if (!used.ok()) return Wrong(used.status().message());
  if (*used != places.size()) return Wrong("there are bytes between the indices and the values");
  std::vector<uint16_t> values(k);
  if (k > 0) std::memcpy(values.data(), bytes.data() + bytes.size() - values_size, values_size);
  for (uint32_t i = 0; i < k; ++i) {
    if (!IsFiniteBf16(values[i])) {
      return Wrong(absl::StrCat("the value of element ", indices[i], " is not finite"));
    }
  }
  return OpenedValues(std::make_shared<TopKValues>(std::move(indices), std::move(values), count));
}

}  // namespace

std::unique_ptr<const Codec> MakeTopKCodec(double share) {
  return std::make_unique<TopKCodec>(share);
}

OpenedValues OpenTopK(Pieces bytes, size_t count) {
  const auto scratch = std::make_unique_for_overwrite<uint8_t[]>(bytes.size());
  return Parse({bytes.At(0, bytes.size(), scratch.get()), bytes.size()}, count);
}

}  // namespace leeway
