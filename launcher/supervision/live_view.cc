#include "launcher/supervision/live_view.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/text/format.h"
#include "launcher/supervision/progress.h"
#include "launcher/supervision/worsening.h"
#include "run/core/figures.h"

namespace leeway {
namespace {

using Style = ViewLine::Style;

// The number of lines besides those of the workers: title, header, bar, figures, notice.
constexpr size_t kOtherLines = 5;

std::string Count(int count, const char* noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

// Returns the number of servers, without those that have left.
std::string CountOfServers(const v1::JobStatus& status) {
  const auto removed =
      std::count_if(status.servers().begin(), status.servers().end(),
                    [](const v1::ServerStatus& server) { return server.state() == "removed"; });
  return Count(status.servers_size() - static_cast<int>(removed), "server");
}

std::string Title(const v1::JobStatus& status) {
  return absl::StrCat(status.name(), "  ", StateName(status.state()), "  ", CountOfServers(status),
                      ", ", Count(status.workers_size(), "worker"), "  ",
                      Clockwise(status.seconds()));
}

struct Column {
  const char* name;
  size_t width;
};
constexpr std::array<Column, 9> kColumns = {{{"worker", 6},
                                             {"state", 9},
                                             {"clock", 9},
                                             {"epoch", 7},
                                             {"behind", 6},
                                             {"samples/s", 10},
                                             {"loss", 9},
                                             {"waits", 5},
                                             {"hidden", 6}}};
using Cells = std::array<std::string, kColumns.size()>;

// The number of columns on a narrow terminal. The last two columns, which break down a worker's
// step, need a wider terminal.
constexpr size_t kNarrowColumns = 7;
constexpr size_t kWideFrom = 110;

// Returns a row of cells, right-aligned except for the state, with free text after them.
std::string ViewRow(const Cells& cells, const std::string& rest, size_t width) {
  std::string row;
  const size_t columns = width < kWideFrom ? kNarrowColumns : kColumns.size();
  for (size_t i = 0; i < columns; ++i) {
    if (i > 0) row += "  ";
    row += i == 1 ? PadRight(cells[i], kColumns[i].width) : PadLeft(cells[i], kColumns[i].width);
  }
  if (!rest.empty()) absl::StrAppend(&row, "  ", rest);
  return Truncate(row, width);
}

std::string HeaderRow(size_t width) {
  Cells names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = kColumns[i].name;
  return ViewRow(names, "waiting for", width);
}

std::string WholePercent(double share) { return Fixed(100 * share, 0) + " %"; }

std::string LiveWorkerRow(const v1::WorkerStatus& worker, uint32_t restarts, size_t width) {
  const bool trained = worker.examples() > 0;
  std::string rest = worker.waiting();
  if (worker.state() == "lost") {
    rest = absl::StrCat("no sign for ", Clockwise(worker.seconds_since_heartbeat()));
  }
  if (restarts > 0) {
    absl::StrAppend(&rest, rest.empty() ? "" : "  ", "(", Count(restarts, "restart"), ")");
  }
  return ViewRow({std::to_string(worker.rank()), worker.state(), Thousands(worker.clock()),
                  Fixed(worker.epoch(), 2), trained ? std::to_string(worker.staleness()) : "-",
                  trained ? Thousands(static_cast<uint64_t>(worker.samples_per_second())) : "-",
                  trained && worker.has_train_loss() ? LossText(worker.train_loss()) : "-",
                  trained ? WholePercent(worker.wait_share()) : "-",
                  worker.has_hidden_share() ? WholePercent(worker.hidden_share()) : "-"},
                 rest, width);
}

ViewLine WorkerLine(const v1::WorkerStatus& worker, const ViewContext& context, size_t width) {
  const uint32_t restarts =
      worker.rank() < context.restarts.size() ? context.restarts[worker.rank()] : 0;
  const bool bad = worker.state() == "lost" || worker.state() == "failed";
  return {LiveWorkerRow(worker, restarts, width), bad ? Style::kWarning : Style::kPlain};
}

std::string BarLine(const v1::JobStatus& status, const ViewContext& context, size_t width) {
  const double share = DoneShare(status);
  std::string after = absl::StrCat(" ", static_cast<int>(100 * share), " %  clock ",
                                   Thousands(static_cast<uint64_t>(MeanClock(status))), " of ",
                                   status.clocks() == 0 ? "?" : Thousands(status.clocks()));
  if (context.eta_seconds.has_value() && status.state() == v1::JOB_RUNNING) {
    absl::StrAppend(&after, "  ", Clockwise(*context.eta_seconds), " left");
  }
  const size_t taken = DisplayWidth(after);
  const size_t bar = taken + 10 < width ? std::min<size_t>(width - taken, 50) : 0;
  return Truncate(bar == 0 ? after : ProgressBar(share, bar) + after, width);
}

// Returns the share of all computed steps that were dropped.
double DroppedShare(const v1::JobStatus& status) {
  double steps = 0, dropped = 0;
  for (const v1::WorkerStatus& worker : status.workers()) {
    steps += static_cast<double>(worker.steps());
    dropped += static_cast<double>(worker.dropped_steps());
  }
  return dropped > 0 ? dropped / (steps + dropped) : 0;
}

// Returns the figures that both the view and the log show.
std::vector<std::string> Figures(const v1::JobStatus& status) {
  std::vector<std::string> figures;
  if (const auto loss = MeanLoss(status)) figures.push_back("loss " + LossInWords(*loss));
  if (!status.evaluations().empty()) {
    const v1::EvaluationMetrics& last = *status.evaluations().rbegin();
    figures.push_back(last.has_test_accuracy() ? "test accuracy " + Percent(last.test_accuracy())
                                               : "test loss " + LossInWords(last.test_loss()));
    for (const TestFigure& figure : TestFigures().subspan(1)) {
      const auto value = figure.In(last);
      if (!value) continue;
      figures.push_back(
          absl::StrCat(figure.short_title, " ", figure.share ? Percent(*value) : LossText(*value)));
    }
  }
  const std::vector<v1::EvaluationMetrics> all(status.evaluations().begin(),
                                               status.evaluations().end());
  if (const std::string was = MuchWorse(all); !was.empty()) {
    figures.push_back("GETTING WORSE: " + was);
  }
  if (const double rate = SamplesPerSecond(status); rate > 0) {
    figures.push_back(Thousands(static_cast<uint64_t>(rate)) + " samples/s");
  }
  figures.push_back(absl::StrCat("staleness at most ", status.max_staleness()));
  if (const double share = DroppedShare(status); share > 0) {
    figures.push_back(Percent(share) + " of the steps dropped");
  }
  if (status.has_checkpoint_clock()) {
    figures.push_back("checkpoint at clock " + Thousands(status.checkpoint_clock()));
  }
  return figures;
}

}  // namespace

std::string StateName(v1::JobState state) {
  switch (state) {
    case v1::JOB_STARTING:
      return "starting";
    case v1::JOB_RUNNING:
      return "running";
    case v1::JOB_STOPPING:
      return "stopping";
    case v1::JOB_FINISHED:
      return "finished";
    case v1::JOB_STOPPED:
      return "stopped";
    case v1::JOB_FAILED:
      return "failed";
    default:
      return "unknown";
  }
}

std::string ProgressBar(double share, size_t width) {
  static constexpr std::array<const char*, 8> kPart = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double exact = std::clamp(share, 0.0, 1.0) * static_cast<double>(width);
  const auto full = static_cast<size_t>(exact);
  const auto eighths = static_cast<size_t>((exact - static_cast<double>(full)) * 8);
  std::string bar;
  for (size_t i = 0; i < full; ++i) bar += "█";
  bar += kPart[eighths];
  for (size_t i = full + (eighths > 0); i < width; ++i) bar += "·";
  return bar;
}

std::vector<ViewLine> RenderLiveView(const v1::JobStatus& status, const ViewContext& context,
                                     size_t width, size_t height) {
  std::vector<ViewLine> lines;
  lines.push_back({Truncate(Title(status), width), Style::kTitle});
  lines.push_back({HeaderRow(width), Style::kHeader});
  // One row is for the cursor. Another row may say how many workers are hidden.
  const size_t workers = status.workers_size();
  const size_t room = height > kOtherLines + 2 ? height - kOtherLines - 1 : 1;
  const size_t shown = workers <= room ? workers : room - 1;
  for (size_t i = 0; i < shown; ++i) {
    lines.push_back(WorkerLine(status.workers(static_cast<int>(i)), context, width));
  }
  if (shown < workers) {
    lines.push_back({Truncate(absl::StrCat("        and ", workers - shown, " more"), width)});
  }
  lines.push_back({BarLine(status, context, width), Style::kBar});
  lines.push_back({Truncate(absl::StrJoin(Figures(status), "  "), width)});
  const std::string& notice = context.notice.empty() ? status.message() : context.notice;
  if (!notice.empty()) lines.push_back({Truncate(notice, width), Style::kWarning});
  return lines;
}

std::string RenderLogLine(const v1::JobStatus& status, const ViewContext& context) {
  std::string line = StateName(status.state());
  if (status.clocks() > 0) {
    absl::StrAppend(&line, "  clock ", Thousands(static_cast<uint64_t>(MeanClock(status))), " of ",
                    Thousands(status.clocks()), "  ", absl::StrJoin(Figures(status), "  "));
  }
  if (context.eta_seconds.has_value() && status.state() == v1::JOB_RUNNING) {
    absl::StrAppend(&line, "  ", Clockwise(*context.eta_seconds), " left");
  }
  if (!status.message().empty()) absl::StrAppend(&line, "  ", status.message());
  return line;
}

}  // namespace leeway
