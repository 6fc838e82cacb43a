// Unpacks gzip (RFC 1952) in memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace leeway {

bool IsGzip(std::span<const uint8_t> bytes);

// The content of all members of `packed`, their checksums verified. Errors name `path` and the byte
// of the packed file: DATA_LOSS for truncated or damaged content, RESOURCE_EXHAUSTED beyond
// `max_bytes` unpacked.
absl::StatusOr<std::vector<uint8_t>> Gunzip(std::span<const uint8_t> packed,
                                            const std::string& path, uint64_t max_bytes);

}  // namespace leeway
