// Reports the metrics of each clock once its exchange is complete, and knows from the exchanges how
// far the job is.
#pragma once

#include <cstdint>
#include <optional>

#include "client/calls/parameter_client.h"
#include "client/calls/peer_calls.h"
#include "client/participant/clock_exchange.h"
#include "client/session/coordinator_session.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// The referenced objects outlive it. Not thread-safe.
class ClockReports {
 public:
  // `peers` may be null.
  ClockReports(CoordinatorSession& session, const ParameterClient& client, const PeerCalls* peers)
      : session_(session), client_(client), peers_(peers) {}

  // Goes on at `clock`. `version` is the version that the servers had before the exchange of
  // `clock`.
  void GoOnAt(uint64_t clock);
  void Begin(uint64_t version) { version_ = version; }
  // Adds the metrics of a clock whose steps are computed. They are sent when the clock's exchange
  // is complete.
  void Add(v1::StepMetrics metrics);
  void Complete(const ExchangeReport& report);
  // The clock whose metrics are not sent yet, as the metrics count it: the number of clocks up to
  // and including that clock.
  std::optional<uint64_t> open() const;
  // Sends the metrics of open(), whose exchange was broken off. The worker goes on at `epoch`.
  // `counts` is true if the servers have counted the contribution, and false if they have dropped
  // it.
  void BreakOff(double epoch, bool counts);

  // The number of completed exchanges.
  uint64_t completed() const { return completed_; }
  // The number of contributions that the servers had applied at the latest exchange, and the rise
  // of this number since the exchange before.
  uint64_t version() const { return version_; }
  uint64_t version_step() const { return version_step_; }

 private:
  Traffic AllTraffic() const;
  void SendIfComplete();
  void Send();

  CoordinatorSession& session_;
  const ParameterClient& client_;
  const PeerCalls* const peers_;
  uint64_t completed_ = 0;
  uint64_t version_ = 0;
  uint64_t version_step_ = 0;
  ExchangeReport last_;
  // Metrics that are not sent yet.
  std::optional<v1::StepMetrics> kept_;
  // The client's traffic that has been reported so far.
  Traffic reported_;
};

}  // namespace leeway
