#include "exchange/kept_state.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/counted.h"
#include "common/status.h"
#include "common/wire/payload.h"
#include "leeway/v1/worker_state.pb.h"

namespace leeway {
namespace {

constexpr char kMagic[4] = {'L', 'W', 'S', 'T'};
constexpr uint32_t kStateVersion = 3;
// The most names in a state, far more than any exchange and optimizer have together.
constexpr int kNamesMax = 16;
constexpr size_t kNameBytesMax = 32;
constexpr size_t kHeaderBytesMax = 4096;

struct Prefix {
  char magic[4];
  uint32_t version;
  uint32_t header_bytes;
};
static_assert(sizeof(Prefix) == 12);

constexpr std::string_view kProgramMagic = "LWKS";
constexpr size_t kProgramPrefixBytes = 24;

uint64_t ElementsOf(const KeptState& state) {
  return state.vectors.empty() ? 0 : state.vectors[0].size();
}

// Names are written to the log, so they must not contain line breaks.
bool IsName(std::string_view name) {
  const auto belongs = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && name.size() <= kNameBytesMax &&
         std::all_of(name.begin(), name.end(), belongs);
}

absl::StatusOr<StateNames> NamesIn(const v1::WorkerStateHeader& header) {
  StateNames names{header.exchange(),
                   {header.own().begin(), header.own().end()},
                   {header.slots().begin(), header.slots().end()},
                   header.residual()};
  if (header.own_size() > kNamesMax || header.slots_size() > kNamesMax || !IsName(names.exchange) ||
      !std::all_of(names.own.begin(), names.own.end(), IsName) ||
      !std::all_of(names.slots.begin(), names.slots.end(), IsName)) {
    return absl::InvalidArgumentError("the saved state of a worker does not name its contents");
  }
  return names;
}

absl::StatusOr<std::optional<StepLossScale>> LossScaleIn(const v1::WorkerStateHeader& header) {
  if (!header.has_loss_scale_log2()) return std::nullopt;
  if (header.loss_scale_log2() > kLossScaleMost || header.clean_steps() >= kLossScaleDoublesAfter) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the saved state of a worker has an impossible loss scale: 2^", header.loss_scale_log2(),
        " after ", Counted(header.clean_steps(), "clean step")));
  }
  return StepLossScale{.log2 = header.loss_scale_log2(), .clean = header.clean_steps()};
}

// Returns an error unless the number of bytes after the header is right for this header and a model
// of `elements`.
absl::Status CheckSize(const v1::WorkerStateHeader& header, uint64_t vectors, uint64_t elements,
                       uint64_t bytes) {
  if (header.elements() != (vectors > 0 ? elements : 0)) {
    return absl::InvalidArgumentError(absl::StrCat("the saved state of a worker has vectors of ",
                                                   header.elements(),
                                                   " elements, but the model has ", elements));
  }
  const uint64_t values = vectors * header.elements() * sizeof(float);
  if (bytes >= values && bytes - values >= header.program_bytes()) {
    const uint64_t counts = bytes - values - header.program_bytes();
    if (counts % sizeof(uint64_t) == 0 && counts / sizeof(uint64_t) == header.counts()) {
      return absl::OkStatus();
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the saved state of a worker has ", bytes, " bytes, which do not match its ",
                   vectors, " vectors of ", header.elements(), " elements, ", header.counts(),
                   " counts and ", header.program_bytes(), " bytes of program state"));
}

// Copies values from the front of `from`, and removes their bytes from it.
template <typename T>
void Take(std::string_view& from, std::span<T> values) {
  if (values.empty()) return;
  std::memcpy(values.data(), from.data(), values.size_bytes());
  from.remove_prefix(values.size_bytes());
}

// Reads a state of the version that this build writes. `bytes` are the bytes after the prefix.
absl::StatusOr<KeptState> ReadNamed(std::string_view bytes, size_t header_bytes,
                                    uint64_t elements) {
  v1::WorkerStateHeader header;
  if (header_bytes > std::min(kHeaderBytesMax, bytes.size()) ||
      !header.ParseFromArray(bytes.data(), static_cast<int>(header_bytes))) {
    return absl::InvalidArgumentError("the header of the saved state of a worker cannot be read");
  }
  bytes.remove_prefix(header_bytes);
  ASSIGN_OR_RETURN(StateNames names, NamesIn(header));
  RETURN_IF_ERROR(CheckSize(header, names.vectors(), elements, bytes.size()));
  KeptState state = KeptState::Zeros(std::move(names), elements, header.counts());
  state.updates = header.updates();
  ASSIGN_OR_RETURN(state.loss_scale, LossScaleIn(header));
  for (FloatBuffer& vector : state.vectors) {
    Take(bytes, vector.span());
    if (FloatPayload::Of(vector.span()).FirstNonFinite() != vector.size()) {
      return absl::InvalidArgumentError(
          "the saved state of a worker has values that are not finite");
    }
  }
  Take(bytes, std::span(state.counts));
  if (header.has_program_bytes()) state.program = std::string(bytes);
  return state;
}

// Reads a state that an older build saved for another program: "LWKS", uint32 version (1), the
// uint64 numbers of weights and of residual values, both as float32, and the program's bytes.
absl::StatusOr<KeptState> ReadOfProgram(std::string_view bytes, uint64_t elements) {
  uint64_t counts[2] = {};
  if (bytes.size() < kProgramPrefixBytes) {
    return absl::InvalidArgumentError(
        "the saved state of a worker is truncated: it ends in the header");
  }
  bytes.remove_prefix(sizeof(Prefix::magic) + sizeof(Prefix::version));
  Take(bytes, std::span<uint64_t>(counts));
  for (const uint64_t count : counts) {
    if (count == 0 || count == elements) continue;
    return absl::InvalidArgumentError(absl::StrCat("the saved state of a worker has vectors of ",
                                                   count, " elements, but the model has ",
                                                   elements));
  }
  StateNames names{.exchange = "", .residual = counts[1] > 0};
  if (counts[0] > 0) names.own = {"weights"};
  if (bytes.size() / sizeof(float) < names.vectors() * elements) {
    return absl::InvalidArgumentError(
        absl::StrCat("the saved state of a worker is truncated: it must have ", names.vectors(),
                     " vectors of ", elements, " values"));
  }
  KeptState state = KeptState::Zeros(std::move(names), elements);
  for (FloatBuffer& vector : state.vectors) Take(bytes, vector.span());
  state.program = std::string(bytes);
  return state;
}

}  // namespace

KeptState KeptState::Zeros(StateNames names, size_t size, size_t counts) {
  KeptState state;
  for (size_t i = 0; i < names.vectors(); ++i) state.vectors.emplace_back(size);
  state.names = std::move(names);
  state.counts.resize(counts);
  return state;
}

std::string SerializeState(const KeptState& state) {
  v1::WorkerStateHeader header;
  header.set_exchange(state.names.exchange);
  header.set_updates(state.updates);
  header.set_elements(ElementsOf(state));
  *header.mutable_own() = {state.names.own.begin(), state.names.own.end()};
  *header.mutable_slots() = {state.names.slots.begin(), state.names.slots.end()};
  header.set_residual(state.names.residual);
  header.set_counts(state.counts.size());
  if (state.loss_scale.has_value()) {
    header.set_loss_scale_log2(state.loss_scale->log2);
    header.set_clean_steps(state.loss_scale->clean);
  }
  if (state.program) header.set_program_bytes(state.program->size());
  const std::string named = header.SerializeAsString();

  Prefix prefix{};
  std::memcpy(prefix.magic, kMagic, sizeof(kMagic));
  prefix.version = kStateVersion;
  prefix.header_bytes = static_cast<uint32_t>(named.size());
  std::string bytes;
  bytes.reserve(sizeof(prefix) + named.size() +
                state.vectors.size() * ElementsOf(state) * sizeof(float) +
                state.counts.size() * sizeof(uint64_t) + header.program_bytes());
  bytes.append(reinterpret_cast<const char*>(&prefix), sizeof(prefix));
  bytes += named;
  for (const FloatBuffer& vector : state.vectors) {
    bytes.append(reinterpret_cast<const char*>(vector.data()), vector.span().size_bytes());
  }
  for (const uint64_t count : state.counts) {
    bytes.append(reinterpret_cast<const char*>(&count), sizeof(count));
  }
  if (state.program) bytes += *state.program;
  return bytes;
}

absl::StatusOr<std::optional<KeptState>> ReadState(const std::string& bytes, uint64_t elements) {
  Prefix prefix{};
  if (bytes.size() < sizeof(prefix)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the saved state of a worker is truncated: it ends after ", bytes.size(), " bytes"));
  }
  std::memcpy(&prefix, bytes.data(), sizeof(prefix));
  if (bytes.starts_with(kProgramMagic) && prefix.version == 1) {
    ASSIGN_OR_RETURN(KeptState state, ReadOfProgram(bytes, elements));
    return state;
  }
  const bool is_one = std::memcmp(prefix.magic, kMagic, sizeof(kMagic)) == 0;
  if (!is_one || prefix.version == 0 || prefix.version > kStateVersion) {
    return absl::InvalidArgumentError(absl::StrCat("the saved state of a worker must have version ",
                                                   kStateVersion, " or an older version"));
  }
  if (prefix.version < kStateVersion) return std::nullopt;
  ASSIGN_OR_RETURN(KeptState state, ReadNamed(std::string_view(bytes).substr(sizeof(prefix)),
                                              prefix.header_bytes, elements));
  return state;
}

}  // namespace leeway
