// Leeway's own path in a transport benchmark: the data plane in one process, and a ParameterClient
// in another.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "bench/base/bench_process.h"
#include "bench/base/transfer.h"
#include "bench/bench_server.h"

namespace leeway {

// Makes the server's service. Its hello is {"tcp", "local"}: the addresses for the client.
absl::StatusOr<BenchService> LeewayServer(const v1::TrainingJob& job, const TransferPlan& plan);
BenchServerAddress AddressFrom(const Json& hello);

// Makes the client's service. It answers {"round": seconds} with {"messages", "seconds", "latency",
// "travelled_bytes"}. A call covers plan.call_blocks blocks, and each call continues in the vector
// where the previous call ended. plan.open_calls calls are open at once. A round fails with
// DATA_LOSS if a pull left weights unchanged, because an answer without values measures nothing.
absl::StatusOr<BenchService> LeewayClient(const v1::TrainingJob& job, const TransferPlan& plan,
                                          const BenchServerAddress& server);

}  // namespace leeway
