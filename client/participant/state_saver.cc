#include "client/participant/state_saver.h"

#include <string>

#include <spdlog/spdlog.h>

#include "common/status.h"

namespace leeway {

absl::Status StateSaver::Tell(uint64_t clock) {
  RETURN_IF_ERROR(session_.KeepState());
  keeps_ = true;
  GoOnAt(clock);
  return absl::OkStatus();
}

absl::Status StateSaver::Load(uint64_t clock, ClockExchange& exchange) {
  if (!registration_.resumed() || !keeps_) return absl::OkStatus();
  const auto state = session_.LoadWorkerState();
  if (absl::IsNotFound(state.status())) return absl::OkStatus();
  RETURN_IF_ERROR(state.status());
  // The state is empty if the earlier life was stopped before it began.
  if (state->bytes.empty()) return absl::OkStatus();
  // An earlier life since the resumption may have gone beyond the checkpoint. Its state is lost,
  // and the checkpoint's state is older than this clock.
  if (state->clock != clock && exchange.TakesOlderState()) {
    spdlog::warn(
        "the saved state is from clock {}; this worker continues with that state at clock {}",
        state->clock, clock);
  } else if (state->clock != clock) {
    spdlog::warn(
        "the saved state is from clock {}, but this worker continues at clock {}, so the state is "
        "not used",
        state->clock, clock);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(exchange.LoadState(state->bytes));
  has_state_ = true;
  return absl::OkStatus();
}

bool StateSaver::IsCutDue(uint64_t clock) const {
  const uint64_t every = registration_.cut_every();
  return keeps_ && every > 0 && clock % every == 0 && cut_ != clock;
}

absl::Status StateSaver::SaveForCut(uint64_t clock, const ClockExchange& exchange) {
  cut_ = clock;
  const absl::Status saved = Save(clock, exchange);
  if (absl::IsAborted(saved)) return saved;
  if (!saved.ok()) spdlog::warn("{}", std::string(saved.message()));
  return absl::OkStatus();
}

absl::Status StateSaver::Save(uint64_t clock, const ClockExchange& exchange) {
  if (!keeps_ || !cut_ || saved_at_ == clock) return absl::OkStatus();
  std::string state;
  if (has_state_) {
    ASSIGN_OR_RETURN(state, exchange.SaveState());
  }
  RETURN_IF_ERROR(session_.SaveWorkerState(clock, state));
  saved_at_ = clock;
  return absl::OkStatus();
}

}  // namespace leeway
