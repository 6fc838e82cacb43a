#include "exchange/state_fit.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status.h"

namespace leeway {
namespace {

std::string List(const std::vector<std::string>& names) { return absl::StrJoin(names, ", "); }

// "elastic: weights, momentum".
std::string Describe(const KeptState& state) {
  std::vector<std::string> parts = state.names.own;
  parts.insert(parts.end(), state.names.slots.begin(), state.names.slots.end());
  if (state.names.residual) parts.push_back("a residual of compressed contributions");
  if (!state.counts.empty()) {
    parts.push_back(absl::StrCat("counts of ", state.counts.size(), " groups of blocks"));
  }
  const std::string& exchange = state.names.exchange;
  return absl::StrCat(exchange.empty() ? "a program" : exchange, ": ",
                      parts.empty() ? "nothing" : List(parts));
}

// Moves the saved state, part by part, into the state of this job. The two may have different
// parts.
class Fitting {
 public:
  Fitting(KeptState& read, KeptState& state)
      : read_(read),
        state_(state),
        was_(Describe(read)),
        // A state that an older build saved for another program does not name its exchange.
        same_exchange_(read.names.exchange.empty() || read.names.exchange == state.names.exchange),
        same_own_(same_exchange_ && read.names.own == state.names.own) {}

  // Returns true if the exchange's own vectors were taken over.
  bool Run() {
    FitOwn();
    FitSlots();
    FitResidual();
    FitCounts();
    state_.loss_scale = read_.loss_scale;
    FitProgram();
    if (!notes_.empty()) {
      spdlog::warn("the saved state ({}) does not match what this job keeps ({}): {}", was_,
                   Describe(state_), absl::StrJoin(notes_, "; "));
    }
    return same_own_;
  }

 private:
  static void Take(bool taken, std::span<FloatBuffer> from, std::span<FloatBuffer> to) {
    if (taken) {
      std::move(from.begin(), from.end(), to.begin());
      return;
    }
    for (FloatBuffer& vector : to) std::fill_n(vector.data(), vector.size(), 0.0f);
  }

  void FitOwn() {
    const auto& had = read_.names.own;
    const auto& wanted = state_.names.own;
    Take(same_own_, std::span(read_.vectors).first(had.size()),
         std::span(state_.vectors).first(wanted.size()));
    if (same_own_) return;
    if (!had.empty())
      notes_.push_back(absl::StrCat("what the exchange kept (", List(had), ") is lost"));
    if (!wanted.empty()) notes_.push_back("the worker starts from the servers' weights");
  }

  void FitSlots() {
    const auto& had = read_.names.slots;
    const auto& wanted = state_.names.slots;
    const bool taken = had == wanted;
    Take(taken, std::span(read_.vectors).subspan(read_.names.own.size(), had.size()),
         std::span(state_.vectors).subspan(state_.names.own.size(), wanted.size()));
    state_.updates = taken ? read_.updates : 0;
    if (taken) return;
    if (!had.empty())
      notes_.push_back(absl::StrCat("what the optimizer kept (", List(had), ") is lost"));
    if (!wanted.empty()) {
      notes_.push_back(absl::StrCat("the optimizer starts anew with ", List(wanted)));
    }
  }

  // A missing residual becomes zeros without a warning, because the job that saved the state sent
  // its contributions without loss.
  void FitResidual() {
    const bool taken = same_exchange_ && read_.names.residual && state_.names.residual;
    if (state_.names.residual) {
      Take(taken, std::span(read_.vectors).last(taken ? 1 : 0), std::span(state_.vectors).last(1));
    }
    if (!read_.names.residual || taken) return;
    notes_.push_back("the unsent residual of compressed contributions is lost");
  }

  void FitCounts() {
    const size_t wanted = state_.counts.size();
    const bool others = same_own_ && !read_.counts.empty() && read_.counts.size() != wanted;
    if (same_own_ && read_.counts.size() == wanted) {
      state_.counts = std::move(read_.counts);
      return;
    }
    // If the saved exchange was not spread, it had just sent all blocks, so all counts are 0. In a
    // new exchange they are 0, too.
    const uint64_t largest =
        others ? *std::max_element(read_.counts.begin(), read_.counts.end()) : 0;
    state_.counts.assign(wanted, largest);
    if (!others) return;
    notes_.push_back(
        "the number of examples that each group has seen since it was last sent is lost");
    if (wanted > 0)
      notes_.push_back(absl::StrCat("every group continues with the largest number, ", largest));
  }

  void FitProgram() {
    if (read_.program && !read_.program->empty() && !state_.program) {
      notes_.push_back("what the program kept is lost");
    }
    if (state_.program) state_.program = std::move(read_.program);
  }

  KeptState& read_;
  KeptState& state_;
  const std::string was_;
  const bool same_exchange_;
  const bool same_own_;
  std::vector<std::string> notes_;
};

}  // namespace

absl::StatusOr<bool> TakeUpState(const std::string& bytes, uint64_t elements, KeptState& state) {
  ASSIGN_OR_RETURN(std::optional<KeptState> read, ReadState(bytes, elements));
  if (read.has_value()) return Fitting(*read, state).Run();
  state = KeptState::Zeros(state.names, elements, state.counts.size());
  spdlog::warn(
      "an older build saved the state without naming its contents, so the state cannot be used; "
      "this job starts anew with {}",
      Describe(state));
  return false;
}

}  // namespace leeway
