// Sends the state that a worker keeps between clocks to the coordinator, and loads it from there.
// The state is part of checkpoints (server/checkpoint/worker_state.h).
#include <string>

#include "absl/strings/str_cat.h"
#include "client/session/coordinator_session.h"
#include "common/status.h"

namespace leeway {
namespace {

// The size of the chunks in which a state is streamed.
constexpr size_t kChunkBytes = 1 << 20;

}  // namespace

absl::Status CoordinatorSession::ReportLossScale(const v1::LossScale& scale) {
  v1::HeartbeatRequest request = heartbeats_.Greeting();
  *request.add_loss_scales() = scale;
  return heartbeats_.Tell("reporting a loss scale", request);
}

absl::Status CoordinatorSession::KeepState() {
  v1::HeartbeatRequest request = heartbeats_.Greeting();
  request.set_keeps_state(true);
  return heartbeats_.Tell("saying that the worker keeps state", request);
}

absl::Status CoordinatorSession::ReportNow(const v1::EvaluationMetrics& metrics) {
  v1::HeartbeatRequest request = heartbeats_.Greeting();
  *request.add_evaluations() = metrics;
  return heartbeats_.Tell("reporting an evaluation", request);
}

absl::Status CoordinatorSession::SaveWorkerState(uint64_t clock, const std::string& state) {
  const auto attempt = [&](grpc::ClientContext& context) {
    v1::SaveWorkerStateReply reply;
    auto writer = calls_.stub().SaveWorkerState(&context, &reply);
    v1::WorkerStateChunk chunk;
    life_.Sign(chunk);
    chunk.set_clock(clock);
    chunk.set_size(state.size());
    for (size_t position = 0; position == 0 || position < state.size(); position += kChunkBytes) {
      chunk.set_data(state.substr(position, kChunkBytes));
      // The stream is broken, and Finish() returns the reason.
      if (!writer->Write(chunk)) break;
      chunk.Clear();
    }
    writer->WritesDone();
    return writer->Finish();
  };
  return Move(absl::StrCat("saving the worker's state at clock ", clock), attempt);
}

absl::StatusOr<WorkerState> CoordinatorSession::LoadWorkerState() {
  WorkerState state;
  const auto attempt = [&](grpc::ClientContext& context) {
    v1::LoadWorkerStateRequest request;
    request.set_job(life_.job);
    request.set_rank(life_.rank);
    request.set_incarnation(life_.incarnation);
    state = {};
    auto reader = calls_.stub().LoadWorkerState(&context, request);
    v1::WorkerStateChunk chunk;
    uint64_t size = 0;
    for (bool first = true; reader->Read(&chunk); first = false) {
      if (first) state.clock = chunk.clock();
      if (first) size = chunk.size();
      state.bytes += chunk.data();
    }
    const grpc::Status status = reader->Finish();
    // The size is checked, because some relays between worker and coordinator do not report a
    // stream that ends early.
    if (!status.ok() || state.bytes.size() >= size) return status;
    return grpc::Status(grpc::StatusCode::UNAVAILABLE,
                        absl::StrCat(state.bytes.size(), " of ", size,
                                     " bytes of the state arrived before the stream ended"));
  };
  RETURN_IF_ERROR(Move("loading the worker's state", attempt));
  return state;
}

}  // namespace leeway
