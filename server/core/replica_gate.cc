#include "server/core/replica_gate.h"

namespace leeway {

void ReplicaGate::Attach() {
  *this = ReplicaGate();
  attached_ = true;
}

void ReplicaGate::Detach() { *this = ReplicaGate(); }

bool ReplicaGate::TakeSend(uint64_t version) {
  if (!attached_ || under_way_.has_value() || version < replicated_) return false;
  under_way_ = version;
  return true;
}

void ReplicaGate::OnSent(bool arrived, uint64_t current) {
  if (arrived && under_way_.has_value()) {
    replicated_ = *under_way_ + 1;
    if (!gating_) {
      gating_ = true;
      gated_from_ = current;
    }
  }
  under_way_.reset();
}

}  // namespace leeway
