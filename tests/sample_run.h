// A small run as its metrics.jsonl would record it.
#pragma once

#include <string>

#include "common/files/files.h"
#include "run/history.h"

namespace leeway {

inline const std::string kSampleMetrics =
    ReadFile(LEEWAY_SOURCE_DIR "/tests/sample_run.jsonl", 1 << 20).value();

inline RunHistory SampleHistory() { return ParseHistory(kSampleMetrics); }

}  // namespace leeway
