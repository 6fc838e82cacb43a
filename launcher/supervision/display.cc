#include "launcher/supervision/display.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>

#include <spdlog/spdlog.h>
#include <unistd.h>

#include "launcher/supervision/live_view.h"
#include "launcher/supervision/progress.h"
#include "launcher/supervision/screen.h"

namespace leeway {
namespace {

// The time between two progress lines if no event is printed.
constexpr Duration kLineEvery = std::chrono::seconds(5);

// Estimates the time left from each status.
class Eta {
 public:
  std::optional<double> Update(Time now, const v1::JobStatus& status) {
    if (status.clocks() == 0) return std::nullopt;
    estimator_.Add(now, MeanClock(status));
    return estimator_.Seconds(static_cast<double>(status.clocks()));
  }

 private:
  EtaEstimator estimator_;
};

class TerminalDisplay : public RunObserver {
 public:
  TerminalDisplay() : screen_(STDOUT_FILENO) {}
  // Erases the view, because it shows the state before the end. The outcome takes its place.
  ~TerminalDisplay() override { screen_.Invalidate(); }

  void OnStatus(Time now, const v1::JobStatus& status, const ViewContext& context) override {
    ViewContext view = context;
    view.eta_seconds = eta_.Update(now, status);
    screen_.Draw(RenderLiveView(status, view, screen_.width(), screen_.height()));
  }
  void OnEvent(const std::string& text) override {
    spdlog::info("{}", text);
    screen_.Print(text);
  }
  void OnResize() override { screen_.Invalidate(); }

 private:
  Screen screen_;
  Eta eta_;
};

class LineDisplay : public RunObserver {
 public:
  void OnStatus(Time now, const v1::JobStatus& status, const ViewContext& context) override {
    ViewContext view = context;
    view.eta_seconds = eta_.Update(now, status);
    const bool news = status.state() != state_ || status.evaluations_size() != evaluations_;
    if (!news && now - last_ < kLineEvery) return;
    state_ = status.state();
    evaluations_ = status.evaluations_size();
    last_ = now;
    Print(RenderLogLine(status, view));
  }
  void OnEvent(const std::string& text) override {
    spdlog::info("{}", text);
    Print(text);
  }

 private:
  static void Print(const std::string& text) {
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    char clock[16];
    std::strftime(clock, sizeof(clock), "%H:%M:%S", &local);
    std::printf("%s  %s\n", clock, text.c_str());
    std::fflush(stdout);
  }

  Eta eta_;
  std::optional<v1::JobState> state_;
  int evaluations_ = 0;
  Time last_{};
};

}  // namespace

bool OutputIsTerminal() {
  const char* term = std::getenv("TERM");
  return isatty(STDOUT_FILENO) != 0 && term != nullptr && std::string_view(term) != "dumb";
}

Duration StatusInterval(bool terminal) { return std::chrono::milliseconds(terminal ? 250 : 1000); }

std::unique_ptr<RunObserver> MakeDisplay(bool terminal) {
  if (terminal) return std::make_unique<TerminalDisplay>();
  return std::make_unique<LineDisplay>();
}

}  // namespace leeway
