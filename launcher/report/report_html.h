// Writes report.html, which shows a run on one page for a person to read.
#pragma once

#include <string>
#include <vector>

#include "run/history.h"
#include "run/run_folder.h"
#include "run/summary.h"

namespace leeway {

struct ReportInput {
  RunSummary summary;
  RunHistory history;
  // The line below the title: "bounded staleness 3, gradient exchange, sgd".
  std::string algorithm;
  std::vector<RunFolder::Checkpoint> checkpoints;
  std::string job_yaml;
  std::string curves_svg;
};

// Returns the whole page, for light and dark colour schemes. The page has no script and loads no
// other file.
std::string ReportHtml(const ReportInput& input);

}  // namespace leeway
