// A small run as its metrics.jsonl would record it.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "common/files/files.h"
#include "run/history.h"

namespace leeway {

inline const std::string kSampleMetrics =
    ReadFile(LEEWAY_SOURCE_DIR "/tests/sample_run.jsonl", 1 << 20).value();

inline RunHistory SampleHistory() { return ParseHistory(kSampleMetrics); }

// The summaries of a run with classes, of one with numbers, and of one that failed early.
inline std::vector<std::string> SampleSummaries() {
  return absl::StrSplit(ReadFile(LEEWAY_SOURCE_DIR "/tests/run/summaries.txt", 1 << 20).value(),
                        "---\n");
}

}  // namespace leeway
