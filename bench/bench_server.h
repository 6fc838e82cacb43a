// Leeway's data plane alone: a server without a coordinator, and the client of one worker.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bench/base/transfer.h"
#include "client/calls/parameter_client.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// Where a bench server is reached.
struct BenchServerAddress {
  // host:port.
  std::string tcp;
  // unix-abstract:NAME.
  std::string local;
};

// Serves until it is destroyed.
class BenchServer {
 public:
  virtual ~BenchServer() = default;
  virtual BenchServerAddress address() const = 0;
};

// The job of a transport benchmark: one server, one worker, async, plain SGD, over `wire`, as a job
// file would say it: contributions encoded with `codec` ("none", "bf16", ...), weights with
// ReplyCodec(codec).
absl::StatusOr<v1::TrainingJob> MakeBenchJob(Wire wire, const std::string& codec);

// `codec` itself, but "none" for top_k and sign: their answers are changes, which only the readers
// of sync mode can be sent.
std::string ReplyCodec(const std::string& codec);

// Serves blocks for `plan`, as a server of `job` would once it is configured.
absl::StatusOr<std::unique_ptr<BenchServer>> StartBenchServer(const v1::TrainingJob& job,
                                                              const TransferPlan& plan);

// Connected and initialized.
absl::StatusOr<std::unique_ptr<ParameterClient>> OpenBenchClient(const v1::TrainingJob& job,
                                                                 const TransferPlan& plan,
                                                                 const BenchServerAddress& server);

}  // namespace leeway
