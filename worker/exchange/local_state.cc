#include "worker/exchange/local_state.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include <spdlog/spdlog.h>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/payload.h"
#include "common/status.h"

namespace leeway {
namespace {

constexpr char kMagic[4] = {'L', 'W', 'S', 'T'};
constexpr uint32_t kVersion = 2;

struct Header {
  char magic[4];
  uint32_t version;
  uint64_t updates;
  uint64_t vectors;
  uint64_t elements;
  uint64_t residual;
};
static_assert(sizeof(Header) == 40);

uint64_t ElementsOf(const LocalState& state) {
  return state.vectors.empty() ? 0 : state.vectors[0].size();
}

// Of vectors other than the residual.
size_t Needed(const LocalState& state) { return state.vectors.size() - (state.residual ? 1 : 0); }

absl::Status CheckHeader(const Header& header, const LocalState& state, uint64_t elements) {
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0 || header.version != kVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("a worker's state: not one of version ", kVersion));
  }
  const uint64_t needed = Needed(state);
  if (header.residual > 1 || header.vectors != needed + header.residual ||
      (header.vectors > 0 && header.elements != elements)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a worker's state holds ", header.vectors, " vectors of ", header.elements, " elements, ",
        header.residual, " of them a residual; the job's exchange and model need ", needed, " of ",
        elements, " and at most a residual"));
  }
  return absl::OkStatus();
}

// As many counts as lie behind the vectors, if that goes with as many as are `wanted`.
absl::StatusOr<size_t> CountsIn(const Header& header, size_t bytes, size_t wanted) {
  const uint64_t vectors = sizeof(Header) + header.vectors * header.elements * sizeof(float);
  const size_t counts = bytes < vectors ? 0 : (bytes - vectors) / sizeof(uint64_t);
  if (bytes == vectors + counts * sizeof(uint64_t) && (counts == 0) == (wanted == 0)) return counts;
  return absl::InvalidArgumentError(absl::StrCat(
      "a worker's state has ", bytes, " bytes instead of ", vectors + wanted * sizeof(uint64_t)));
}

// `from`, and moves it on.
template <typename T>
void Take(const char*& from, std::span<T> values) {
  if (values.empty()) return;
  std::memcpy(values.data(), from, values.size_bytes());
  from += values.size_bytes();
}

// Makes `read` what `state` is.
void FitResidual(const LocalState& state, uint64_t elements, LocalState& read) {
  if (read.residual && !state.residual) {
    spdlog::warn(
        "the saved state holds a residual of compressed contributions, which are not compressed "
        "any more: what it had not sent yet is lost");
    read.vectors.pop_back();
  } else if (state.residual && !read.residual) {
    read.vectors.emplace_back(elements);
  }
  read.residual = state.residual;
}

void FitCounts(size_t wanted, std::vector<uint64_t>& counts) {
  if (counts.size() == wanted) return;
  const uint64_t largest = *std::max_element(counts.begin(), counts.end());
  spdlog::warn(
      "the saved state is of {} groups of blocks, and there are {} now: how many examples each "
      "group has seen since it was sent is lost; all go on with the most, {}",
      counts.size(), wanted, largest);
  counts.assign(wanted, largest);
}

}  // namespace

LocalState LocalState::Zeros(size_t count, size_t size, bool residual) {
  LocalState state;
  state.residual = residual;
  for (size_t i = 0; i < count + (residual ? 1 : 0); ++i) state.vectors.emplace_back(size);
  return state;
}

void LocalState::CopyFrom(const LocalState& other) {
  updates = other.updates;
  counts = other.counts;
  for (size_t i = 0; i < std::min(vectors.size(), other.vectors.size()); ++i) {
    std::memcpy(vectors[i].data(), other.vectors[i].data(), other.vectors[i].span().size_bytes());
  }
}

std::string SerializeState(const LocalState& state) {
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kVersion;
  header.updates = state.updates;
  header.vectors = state.vectors.size();
  header.elements = ElementsOf(state);
  header.residual = state.residual ? 1 : 0;
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  bytes.reserve(bytes.size() + header.vectors * header.elements * sizeof(float));
  for (const FloatBuffer& vector : state.vectors) {
    bytes.append(reinterpret_cast<const char*>(vector.data()), vector.span().size_bytes());
  }
  for (const uint64_t count : state.counts) {
    bytes.append(reinterpret_cast<const char*>(&count), sizeof(count));
  }
  return bytes;
}

absl::Status ParseState(const std::string& bytes, uint64_t elements, LocalState& state) {
  Header header{};
  if (bytes.size() < sizeof(header)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a worker's state breaks off after ", bytes.size(), " bytes"));
  }
  std::memcpy(&header, bytes.data(), sizeof(header));
  RETURN_IF_ERROR(CheckHeader(header, state, elements));
  ASSIGN_OR_RETURN(const size_t counts, CountsIn(header, bytes.size(), state.counts.size()));
  LocalState read = LocalState::Zeros(Needed(state), elements, header.residual == 1);
  read.updates = header.updates;
  read.counts.resize(counts);
  const char* position = bytes.data() + sizeof(header);
  for (FloatBuffer& vector : read.vectors) {
    Take(position, vector.span());
    if (FloatPayload::Of(vector.span()).FirstNonFinite() != vector.size()) {
      return absl::InvalidArgumentError("a worker's state holds values that are not finite");
    }
  }
  Take(position, std::span(read.counts));
  FitResidual(state, elements, read);
  FitCounts(state.counts.size(), read.counts);
  state = std::move(read);
  return absl::OkStatus();
}

}  // namespace leeway
