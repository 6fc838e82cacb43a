// A small valid job for the tests of the reader, and edits of it.
#pragma once

#include <string>

namespace leeway::testing {

// Messages name these line numbers.
inline const char* const kSampleJob =
    "apiVersion: leeway/v1\n"                       // 1
    "kind: TrainingJob\n"                           // 2
    "metadata: {name: sample}\n"                    // 3
    "model:\n"                                      // 4
    "  layers:\n"                                   // 5
    "    - flatten: {}\n"                           // 6
    "    - dense: {units: 10}\n"                    // 7
    "  loss: softmax_cross_entropy\n"               // 8
    "data:\n"                                       // 9
    "  train: {type: idx, images: a, labels: b}\n"  // 10
    "  batch_size: 32\n"                            // 11
    "exchange: {type: gradient}\n"                  // 12
    "consistency: {mode: bounded, staleness: 3}\n"  // 13
    "update: {type: sgd, learning_rate: 0.1}\n"     // 14
    "stop: {epochs: 2}\n";                          // 15

// Returns the sample with `from` replaced by `to`. `from` must occur.
inline std::string Sample(const std::string& from = "", const std::string& to = "") {
  std::string job = kSampleJob;
  return job.replace(job.find(from), from.size(), to);
}

}  // namespace leeway::testing
