// The outcome of a run in words, for the terminal.
#pragma once

#include <string>
#include <vector>

#include "run/run_folder.h"
#include "run/summary.h"

namespace leeway {

// Describes the result for a person: the figures, where the files are, and how to resume the run.
// `data` is the folder that --data named. If Leeway found the folder without --data, `data` is
// empty, because Leeway will find it again. `command` is the workers' program in an external job.
std::string DescribeOutcome(const RunSummary& summary, const RunPlace& place,
                            const std::string& data, const std::vector<std::string>& command = {});

}  // namespace leeway
