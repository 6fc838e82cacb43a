// Writes the `data` part of a job as YAML.
#pragma once

#include <cstdint>
#include <string>

#include "launcher/inspect/guess_source.h"
#include "launcher/inspect/statistics.h"

namespace leeway {

// Evaluates on the test source if there is one, and on a held-out tenth otherwise. The batch size
// is not too large for `examples`. Normalises by `values`, unless they are empty.
std::string DataYaml(const GuessedSource& guessed, const ValueStatistics& values,
                     uint64_t examples);

}  // namespace leeway
