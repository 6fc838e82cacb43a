// Writes the `data` part of a job as YAML.
#pragma once

#include <cstdint>
#include <string>

#include "launcher/inspect/guess_source.h"
#include "launcher/inspect/statistics.h"

namespace leeway {

// Returns the `data` part. The job evaluates on the test source if there is one, and otherwise on a
// held-out tenth. The batch size fits the number of `examples`. The job normalises by `values`,
// unless they are empty.
std::string DataYaml(const GuessedSource& guessed, const ValueStatistics& values,
                     uint64_t examples);

}  // namespace leeway
