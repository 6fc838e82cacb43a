// Chooses with whom a worker exchanges, by the job's topology.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "client/participant/block_holder.h"
#include "client/participant/participant.h"
#include "common/clock.h"
#include "exchange/carriers/carrier.h"

namespace leeway {

// Returns the carrier of a worker. The participant is open. `holder` is the server in the worker's
// process, or null if there is none. Both outlive the carrier.
std::unique_ptr<Carrier> MakeCarrier(
    Participant& participant, BlockHolder* holder,
    std::function<Time()> now = [] { return std::chrono::steady_clock::now(); });

}  // namespace leeway
