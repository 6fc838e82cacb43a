// Reports the metrics of each clock once its exchange is complete, and keeps what the exchanges
// have shown of the job's progress.
#pragma once

#include <cstdint>
#include <optional>

#include "client/calls/parameter_client.h"
#include "client/participant/clock_exchange.h"
#include "client/session/coordinator_session.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// The referenced objects outlive it. Not thread-safe.
class ClockReports {
 public:
  ClockReports(CoordinatorSession& session, const ParameterClient& client)
      : session_(session), client_(client) {}

  // Goes on at `clock`, before whose exchange the servers had this version.
  void GoOnAt(uint64_t clock);
  void Begin(uint64_t version) { version_ = version; }
  // Adds the metrics of a clock whose steps are computed. They are sent when the clock's exchange
  // is complete.
  void Add(v1::StepMetrics metrics);
  void Complete(const ExchangeReport& report);
  // The clock whose metrics are not sent yet, as they name it: the number of clocks with it.
  std::optional<uint64_t> open() const;
  // Sends the metrics of open(), whose exchange was broken off. The worker goes on at `epoch`.
  // `counts` is whether the servers have counted the contribution or dropped it.
  void BreakOff(double epoch, bool counts);

  // The number of completed exchanges.
  uint64_t completed() const { return completed_; }
  // The number of contributions that the servers had applied at the latest exchange, and how much
  // it had risen since the exchange before.
  uint64_t version() const { return version_; }
  uint64_t version_step() const { return version_step_; }

 private:
  void SendIfComplete();
  void Send();

  CoordinatorSession& session_;
  const ParameterClient& client_;
  uint64_t completed_ = 0;
  uint64_t version_ = 0;
  uint64_t version_step_ = 0;
  ExchangeReport last_;
  // Metrics that are not sent yet.
  std::optional<v1::StepMetrics> kept_;
  // The part of the client's traffic that has been reported.
  Traffic reported_;
};

}  // namespace leeway
