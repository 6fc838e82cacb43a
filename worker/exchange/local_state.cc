#include "worker/exchange/local_state.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/payload.h"

namespace leeway {
namespace {

constexpr char kMagic[4] = {'L', 'W', 'S', 'T'};
constexpr uint32_t kVersion = 1;

struct Header {
  char magic[4];
  uint32_t version;
  uint64_t updates;
  uint64_t vectors;
  uint64_t elements;
};
static_assert(sizeof(Header) == 32);

uint64_t ElementsOf(const LocalState& state) {
  return state.vectors.empty() ? 0 : state.vectors[0].size();
}

absl::Status CheckHeader(const Header& header, const LocalState& state, size_t bytes) {
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0 || header.version != kVersion) {
    return absl::InvalidArgumentError("a worker's state: not one of version 1");
  }
  const uint64_t elements = ElementsOf(state);
  if (header.vectors != state.vectors.size() || header.elements != elements) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a worker's state holds ", header.vectors, " vectors of ", header.elements,
        " elements; the job's exchange and model need ", state.vectors.size(), " of ", elements));
  }
  const uint64_t expected = sizeof(Header) + header.vectors * elements * sizeof(float) +
                            state.counts.size() * sizeof(uint64_t);
  if (bytes != expected) {
    return absl::InvalidArgumentError(
        absl::StrCat("a worker's state has ", bytes, " bytes instead of ", expected));
  }
  return absl::OkStatus();
}

}  // namespace

LocalState LocalState::Zeros(size_t count, size_t size) {
  LocalState state;
  for (size_t i = 0; i < count; ++i) state.vectors.emplace_back(size);
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

absl::Status ParseState(const std::string& bytes, LocalState& state) {
  Header header{};
  if (bytes.size() < sizeof(header)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a worker's state breaks off after ", bytes.size(), " bytes"));
  }
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (absl::Status status = CheckHeader(header, state, bytes.size()); !status.ok()) return status;
  LocalState read = LocalState::Zeros(header.vectors, header.elements);
  read.updates = header.updates;
  const char* position = bytes.data() + sizeof(header);
  for (FloatBuffer& vector : read.vectors) {
    std::memcpy(vector.data(), position, vector.span().size_bytes());
    position += vector.span().size_bytes();
    if (FloatPayload::Of(vector.span()).FirstNonFinite() != vector.size()) {
      return absl::InvalidArgumentError("a worker's state holds values that are not finite");
    }
  }
  read.counts.resize(state.counts.size());
  for (uint64_t& count : read.counts) {
    std::memcpy(&count, position, sizeof(count));
    position += sizeof(count);
  }
  state = std::move(read);
  return absl::OkStatus();
}

}  // namespace leeway
