// `leeway bench transport`: pushes, pulls and both at once through Leeway's data plane, each beside
// the raw limit of its transport, in the same run; and small exchanges a second beside a bare gRPC
// call.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/base/transfer.h"
#include "bench/interleave.h"

namespace leeway {

struct TransportBenchOptions {
  std::vector<Wire> wires = {Wire::kTcp, Wire::kUnix, Wire::kShm, Wire::kAuto};
  std::vector<TransferMethod> methods = {TransferMethod::kPush, TransferMethod::kPull,
                                         TransferMethod::kPushPull};
  // Of a block.
  std::vector<uint64_t> sizes = {4 << 10, 64 << 10, 1 << 20, 4 << 20, 16 << 20};
  // As in job.compression; of transfers, exchanges have none.
  std::vector<std::string> codecs = {"none"};
  // Whole transfers; small exchanges a second.
  bool transfers = true;
  bool exchanges = true;
  // Over TCP with mutual TLS, beside Leeway's plain TCP instead of the raw limit.
  bool tls = false;
  RoundOptions rounds;
  // Called before each measurement, with its name.
  std::function<void(const std::string&)> progress = [](const std::string&) {};
  // Called after each, with its name and its figures in a line.
  std::function<void(const std::string&)> measured = [](const std::string&) {};
};

// One line of the table.
struct TransferResult {
  TransferPlan plan;
  Wire wire = Wire::kTcp;
  // Of contributions, and of what is answered.
  std::string codec;
  std::string reply_codec;
  // What travelled, headers included, of the floats' bytes: 1 and a little without a codec.
  double travel_share = 0;
  TransferFigures leeway;
  // The same floats, not encoded.
  // With `tls`: over plain TCP.
  TransferFigures raw;
  // Leeway / raw; medians of the ratios of neighbouring rounds.
  double share = 0;
  double cpu_ratio = 0;
  // Of Leeway's server, and what two versions of the parameters (plain SGD has no slots) and the
  // messages in flight take.
  uint64_t server_peak_bytes = 0;
  uint64_t parameter_bytes = 0;
  uint64_t in_flight_bytes = 0;
};

// 4 KiB there and back.
struct ExchangeRateResult {
  Wire wire = Wire::kTcp;
  // "1 call", "64 calls" of one block each, "a call of 64 blocks".
  std::string in_flight;
  TransferFigures leeway;
  // Bare unary gRPC, one at a time, on the same transport; over a unix socket for shm and auto.
  TransferFigures ping;
  double ratio = 0;
};

struct TransportBenchResult {
  bool tls = false;
  // Bytes a second that one processor encrypts (CipherRate); 0 without TLS.
  double cipher_rate = 0;
  std::vector<TransferResult> transfers;
  std::vector<ExchangeRateResult> exchanges;
};

// After an error `result` has what was measured before it; nothing is measured after it.
// INVALID_ARGUMENT for pulls with top_k or sign, which would be answered without a codec.
absl::Status BenchTransport(const TransportBenchOptions& options, TransportBenchResult& result);

// The working set: enough blocks for several to be in flight, in not too much memory.
TransferPlan PlanFor(TransferMethod method, uint64_t block_bytes);

}  // namespace leeway
