#include "exchange/kept_state.h"

#include <cstring>
#include <span>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace leeway {
namespace {

constexpr std::string_view kMagic = "LWKS";
constexpr uint32_t kStateVersion = 1;

template <typename T>
void Append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void Append(std::string& bytes, std::span<const float> values) {
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

// Reads the rest of the bytes.
class Reader {
 public:
  explicit Reader(std::string_view rest) : rest_(rest) {}

  std::string_view rest() const { return rest_; }
  absl::Status Take(void* to, size_t count) {
    if (rest_.size() < count) return absl::InvalidArgumentError("it is too short");
    std::memcpy(to, rest_.data(), count);
    rest_.remove_prefix(count);
    return absl::OkStatus();
  }
  absl::Status TakeVector(uint64_t count, uint64_t elements, std::vector<float>& values) {
    if (count != 0 && count != elements) {
      return absl::InvalidArgumentError(
          absl::StrCat("it is of a model of ", count, " elements, but this model has ", elements));
    }
    if (rest_.size() < count * sizeof(float)) return absl::InvalidArgumentError("it is too short");
    values.resize(count);
    return count == 0 ? absl::OkStatus() : Take(values.data(), count * sizeof(float));
  }

 private:
  std::string_view rest_;
};

absl::StatusOr<KeptState> Read(std::string_view bytes, uint64_t elements) {
  Reader reader(bytes);
  char magic[4];
  uint32_t version = 0;
  uint64_t weights = 0, residual = 0;
  RETURN_IF_ERROR(reader.Take(magic, sizeof(magic)));
  if (std::string_view(magic, sizeof(magic)) != kMagic) {
    return absl::InvalidArgumentError("it was saved by another kind of worker");
  }
  RETURN_IF_ERROR(reader.Take(&version, sizeof(version)));
  if (version != kStateVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("this program cannot read its version ", version));
  }
  RETURN_IF_ERROR(reader.Take(&weights, sizeof(weights)));
  RETURN_IF_ERROR(reader.Take(&residual, sizeof(residual)));
  KeptState state;
  RETURN_IF_ERROR(reader.TakeVector(weights, elements, state.weights));
  RETURN_IF_ERROR(reader.TakeVector(residual, elements, state.residual));
  state.bytes = std::string(reader.rest());
  return state;
}

}  // namespace

std::string SerializeKept(const KeptState& state) {
  std::string bytes(kMagic);
  Append(bytes, kStateVersion);
  Append(bytes, uint64_t{state.weights.size()});
  Append(bytes, uint64_t{state.residual.size()});
  Append(bytes, std::span<const float>(state.weights));
  Append(bytes, std::span<const float>(state.residual));
  bytes += state.bytes;
  return bytes;
}

absl::StatusOr<KeptState> ReadKept(const std::string& bytes, uint64_t elements) {
  auto state = Read(bytes, elements);
  if (!state.ok()) return Annotate(state.status(), "the worker's saved state");
  return state;
}

}  // namespace leeway
