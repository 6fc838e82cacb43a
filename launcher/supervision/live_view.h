// What a person sees while a job trains, as lines of text. Pure: a status in, lines out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// One line of at most the asked width.
struct ViewLine {
  enum class Style { kPlain, kTitle, kHeader, kBar, kWarning };
  std::string text;
  Style style = Style::kPlain;
  friend bool operator==(const ViewLine&, const ViewLine&) = default;
};

// What the launcher knows beyond the coordinator's status.
struct ViewContext {
  // By rank.
  std::vector<uint32_t> restarts;
  std::optional<double> eta_seconds;
  // Such as "stopping; Ctrl-C again kills".
  std::string notice;
};

// "running", "finished", ...
std::string StateName(v1::JobState state);

// Columns and rows of the terminal; more workers than fit are summed up in one line. Where there is
// room, a worker's line also says which share of its time it waits for the servers, and which share
// of the exchange its compute hides.
std::vector<ViewLine> RenderLiveView(const v1::JobStatus& status, const ViewContext& context,
                                     size_t width, size_t height);

// A bar of `width` columns.
std::string ProgressBar(double share, size_t width);

// The same in one line, for a log.
std::string RenderLogLine(const v1::JobStatus& status, const ViewContext& context);

}  // namespace leeway
