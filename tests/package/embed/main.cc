// embed COORDINATOR: one worker whose loop is README's, as it stands there. Its contribution pulls
// each weight to a value of its own. It prints the largest remaining distance.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>

#include <unistd.h>

#include "client/calls/client_options.h"
#include "client/calls/parameter_client.h"
#include "client/session/coordinator_session.h"
#include "common/identity.h"
#include "common/rpc/channel.h"
#include "common/status.h"

namespace {

constexpr uint64_t kElements = 1000;

float Target(size_t i) { return static_cast<float>(i % 7) - 3; }

float Distance(std::span<const float> weights) {
  float most = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    most = std::max(most, std::fabs(weights[i] - Target(i)));
  }
  return most;
}

void Compute(std::span<const float> weights, std::span<float> gradient) {
  for (size_t i = 0; i < weights.size(); ++i) gradient[i] = weights[i] - Target(i);
}

absl::Status Train(const leeway::ParameterClientOptions& options, uint64_t clocks,
                   float& distance) {
  constexpr uint64_t examples = 1;
#include "readme_loop.h"
  distance = Distance(weights.span());
  return absl::OkStatus();
}

absl::Status Run(const std::string& coordinator) {
  leeway::CoordinatorSession session(leeway::MakeChannel(coordinator),
                                     {.address = coordinator,
                                      .host = "here",
                                      .pid = static_cast<uint32_t>(getpid()),
                                      .nonce = leeway::RandomIdentity()});
  leeway::v1::RegisterWorkerRequest request;
  request.set_rank(0);
  request.set_steps_per_epoch(1);
  leeway::v1::ModelSchema& schema = *request.mutable_schema();
  schema.set_total(kElements);
  schema.set_trained(kElements);
  leeway::v1::TensorSpec& tensor = *schema.add_tensors();
  tensor.set_name("w");
  tensor.add_shape(kElements);
  ASSIGN_OR_RETURN(const auto reply, session.Register(request, std::chrono::seconds(60)));
  session.StartHeartbeats(std::chrono::seconds(1), {});
  ASSIGN_OR_RETURN(const auto options, leeway::ClientOptionsOf(reply));
  ASSIGN_OR_RETURN(auto first, leeway::ParameterClient::Open(options));
  RETURN_IF_ERROR(first->Attach().status());
  leeway::FloatBuffer zeros = first->MakeVector();
  RETURN_IF_ERROR(first->Initialize(zeros.span()));
  const uint64_t clocks = reply.job().stop().clocks();
  float distance = 0;
  RETURN_IF_ERROR(Train(options, clocks, distance));
  std::printf("distance %g\n", distance);
  session.SetClock(clocks);
  return session.Leave(leeway::v1::LEAVE_FINISHED, clocks, "");
}

}  // namespace

int main(int argc, char** argv) {
  const absl::Status status = Run(argv[1]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
