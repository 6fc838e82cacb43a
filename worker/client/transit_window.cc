#include "worker/client/transit_window.h"

#include <algorithm>

namespace leeway {

void TransitWindow::OnSent(uint64_t bytes, Time now) {
  if (messages_++ == 0) last_ = now;
  bytes_ += bytes;
}

void TransitWindow::OnArrived(uint64_t bytes, Time now) {
  busy_seconds_ += Seconds(now - last_);
  moved_bytes_ += static_cast<double>(bytes);
  last_ = now;
  --messages_;
  bytes_ -= bytes;
  if (busy_seconds_ > kMemorySeconds) {
    busy_seconds_ /= 2;
    moved_bytes_ /= 2;
  }
}

double TransitWindow::Limit() const {
  if (busy_seconds_ <= 0) return kBytesMax;
  return std::min(rate() * kQueueSeconds, kBytesMax);
}

}  // namespace leeway
