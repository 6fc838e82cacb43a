#include "exchange/read_weights.h"

namespace leeway {

absl::StatusOr<uint64_t> ReadWeights(ParameterClient& client, uint64_t clock,
                                     std::span<float> weights) {
  const ParameterClient::Ticket ticket = client.Pull(clock, weights);
  const auto read = client.Wait(ticket);
  if (read.ok()) return read->version;
  if (absl::IsAlreadyExists(read.status())) client.Settle(ticket);
  return read.status();
}

}  // namespace leeway
