// Leeway's data plane alone: a server without a coordinator, and the client of one worker.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bench/base/transfer.h"
#include "client/calls/parameter_client.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// The addresses of a bench server.
struct BenchServerAddress {
  // The address as host:port.
  std::string tcp;
  // The address as unix-abstract:NAME.
  std::string local;
};

// A server that runs until this object is destroyed.
class BenchServer {
 public:
  virtual ~BenchServer() = default;
  virtual BenchServerAddress address() const = 0;
};

// Returns the resolved job of a transport benchmark: one server, one worker, async, plain SGD, over
// `wire`. Contributions are encoded with `codec` (such as "none" or "bf16"), and weights with
// ReplyCodec(codec).
absl::StatusOr<v1::TrainingJob> MakeBenchJob(Wire wire, const std::string& codec);

// Returns `codec` itself, but "none" for top_k and sign, because with these codecs answers are
// changes, which a server can send only in sync mode.
std::string ReplyCodec(const std::string& codec);

// Starts a server with the blocks of `plan`, like a configured server of `job`.
absl::StatusOr<std::unique_ptr<BenchServer>> StartBenchServer(const v1::TrainingJob& job,
                                                              const TransferPlan& plan);

// Returns a client that is connected and has initialized the blocks.
absl::StatusOr<std::unique_ptr<ParameterClient>> OpenBenchClient(const v1::TrainingJob& job,
                                                                 const TransferPlan& plan,
                                                                 const BenchServerAddress& server);

}  // namespace leeway
