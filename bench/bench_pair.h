// A client process and a server process, measured in rounds.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bench/base/bench_process.h"
#include "bench/base/transfer.h"
#include "common/security/key_folder.h"

namespace leeway {

// Not thread-safe.
class BenchPair {
 public:
  // Measures Leeway's own path. With `keys` it uses mutual TLS.
  static absl::StatusOr<std::unique_ptr<BenchPair>> Leeway(Wire wire, const std::string& codec,
                                                           const TransferPlan& plan,
                                                           const KeyFolder* keys = nullptr);
  // Measures the same work without Leeway: for shm through a ring in shared memory, otherwise on a
  // bare socket (for auto a TCP socket).
  static absl::StatusOr<std::unique_ptr<BenchPair>> Raw(Wire wire, const TransferPlan& plan);
  // Measures a bare unary gRPC call (bench/ping.h) over tcp or unix.
  static absl::StatusOr<std::unique_ptr<BenchPair>> Ping(Wire wire);

  // Moves messages for `seconds`, and returns what was measured.
  absl::StatusOr<TransferRound> Run(double seconds);

  uint64_t server_peak_bytes() const;
  uint64_t client_peak_bytes() const;

 private:
  using Make = std::function<absl::StatusOr<BenchService>()>;
  // Starts the server first, because the client may need the server's hello.
  static absl::StatusOr<std::unique_ptr<BenchPair>> Start(
      const std::string& name, const Make& server,
      const std::function<absl::StatusOr<BenchService>(const Json& hello)>& client);
  BenchPair() = default;
  double CpuSeconds() const;

  bool resets_ = false;
  // Declared last, so that the client is destroyed first.
  std::unique_ptr<BenchProcess> server_;
  std::unique_ptr<BenchProcess> client_;
};

}  // namespace leeway
