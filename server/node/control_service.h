// Carries out the coordinator's commands to a server (the ShardControl service), and owns the part
// of the model that the server holds. A configuration is accepted as a whole or changes nothing.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/mutex.h"
#include "common/rpc/transport_security.h"
#include "common/service/admitted_service.h"
#include "common/service/server_queue.h"
#include "leeway/v1/coordinator.grpc.pb.h"
#include "server/node/held_model.h"
#include "server/node/server_membership.h"
#include "server/service/parameter_service.h"

namespace leeway {

// Thread-safe. Refuses every command until the server has joined its job.
class ControlService final : public AdmittedService<v1::ShardControl::Service> {
 public:
  // Serves the model through `data`, and tells `membership` what the server holds.
  ControlService(ParameterService& data, ServerMembership& membership,
                 const TransportSecurity& security)
      : AdmittedService("leeway.v1.ShardControl"),
        data_(data),
        membership_(membership),
        security_(security) {}

  // Accepts calls on `queue` from now on. Call this once the gRPC server runs. `queue` must outlive
  // the service.
  void Await(ServerQueue* queue);
  // Releases the model, and ends the streams to other servers. Call this before the queue stops.
  void Close();

 private:
  absl::Status Configure(const v1::ConfigureRequest& request);
  absl::Status SetLive(const v1::SetLiveRequest& request);
  absl::StatusOr<v1::SavedShard> Save(const v1::SaveRequest& request);
  absl::Status Shutdown(const v1::ShutdownRequest& request);
  // How much of a configuration is new: nothing, because the server has it already; the placement
  // only; or all of it.
  enum class Take { kHere, kPlacement, kAll };
  absl::StatusOr<Take> HowToTake(const v1::ConfigureRequest& request) REQUIRES(configuring_);
  // Checks, before anything is released, that the configuration can be accepted.
  absl::Status CheckTakeable(const v1::ConfigureRequest& request, Take take) const
      REQUIRES(configuring_);
  absl::Status MakeModel(const v1::ConfigureRequest& request) REQUIRES(configuring_);
  // Releases the model of an older generation, and finishes its files.
  void Retire() REQUIRES(configuring_);
  // Serves no shard of this generation, and releases the model.
  void Release(uint64_t generation) REQUIRES(configuring_);
  void ReportCut(uint64_t generation, uint32_t shard, uint64_t cut,
                 const absl::StatusOr<v1::SavedShard>& saved);

  ParameterService& data_;
  ServerMembership& membership_;
  const TransportSecurity& security_;
  ServerQueue* queue_ = nullptr;
  // Configuring and saving take long, so only one of them runs at a time.
  Mutex configuring_;
  std::unique_ptr<HeldModel> model_ GUARDED_BY(configuring_);
  // Work that was queued before Close() may still run afterwards.
  bool closed_ GUARDED_BY(configuring_) = false;
};

}  // namespace leeway
