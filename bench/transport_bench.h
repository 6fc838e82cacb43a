// `leeway bench transport`: pushes, pulls and both at once through Leeway's data plane. Each is
// compared with the raw limit of its transport, in the same run. The command also compares the rate
// of small exchanges with the rate of bare gRPC calls.
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
  // The sizes of a block, in bytes.
  std::vector<uint64_t> sizes = {4 << 10, 64 << 10, 1 << 20, 4 << 20, 16 << 20};
  // The codecs of transfers, with names as in job.compression. Exchanges use no codec.
  std::vector<std::string> codecs = {"none"};
  // Whether to measure whole transfers, and whether to measure the rate of small exchanges.
  bool transfers = true;
  bool exchanges = true;
  // If true, measures TCP with mutual TLS, and compares it with Leeway's plain TCP.
  bool tls = false;
  RoundOptions rounds;
  // Called before each measurement, with its name.
  std::function<void(const std::string&)> progress = [](const std::string&) {};
  // Called after each measurement, with its name and its figures in one line.
  std::function<void(const std::string&)> measured = [](const std::string&) {};
};

// One line of the table.
struct TransferResult {
  TransferPlan plan;
  Wire wire = Wire::kTcp;
  // The codec of contributions, and that of answers.
  std::string codec;
  std::string reply_codec;
  // The bytes that were sent, with headers, as a share of the floats' bytes. Without a codec the
  // share is slightly above 1.
  double travel_share = 0;
  TransferFigures leeway;
  // The raw limit: the same floats without a codec. With `tls` it is Leeway over plain TCP.
  TransferFigures raw;
  // Leeway / raw: the medians of the ratios of neighbouring rounds.
  double share = 0;
  double cpu_ratio = 0;
  // The peak memory of Leeway's server, and two parts of it: two versions of the parameters (plain
  // SGD has no slots), and the messages in flight.
  uint64_t server_peak_bytes = 0;
  uint64_t parameter_bytes = 0;
  uint64_t in_flight_bytes = 0;
};

// The rate of exchanges of 4 KiB in each direction.
struct ExchangeRateResult {
  Wire wire = Wire::kTcp;
  // What is in flight: "1 call", "64 calls" of one block each, or "a call of 64 blocks".
  std::string in_flight;
  TransferFigures leeway;
  // Bare unary gRPC calls, one at a time, on the same transport. For shm and auto they use a unix
  // socket.
  TransferFigures ping;
  double ratio = 0;
};

struct TransportBenchResult {
  bool tls = false;
  // The bytes a second that one processor encrypts (CipherRate). 0 without TLS.
  double cipher_rate = 0;
  std::vector<TransferResult> transfers;
  std::vector<ExchangeRateResult> exchanges;
};

// Stops at the first error and returns it. `result` has the results from before the error. Returns
// INVALID_ARGUMENT for pulls with top_k or sign, because the server would answer these pulls
// without a codec.
absl::Status BenchTransport(const TransportBenchOptions& options, TransportBenchResult& result);

// Returns the plan for blocks of this size. It has enough blocks for several to be in flight,
// without too much memory.
TransferPlan PlanFor(TransferMethod method, uint64_t block_bytes);

}  // namespace leeway
