#include "client/transport/transit_window.h"

#include <algorithm>
#include <cmath>

namespace leeway {

void TransitWindow::OnSent(uint64_t bytes, Time now) {
  if (messages_++ == 0) last_ = now;
  bytes_ += bytes;
  largest_bytes_ = std::max(largest_bytes_, bytes);
}

void TransitWindow::OnArrived(uint64_t bytes, Time sent, Time now) {
  const double took = Seconds(now - sent);
  if (bytes >= 2 * measured_bytes_) {
    measured_bytes_ = bytes;
    shortest_seconds_ = took;
  } else if (2 * bytes >= measured_bytes_) {
    shortest_seconds_ = std::min(*shortest_seconds_, took);
  }
  OnLost(bytes, now);
}

void TransitWindow::Forget() {
  measured_bytes_ = 0;
  shortest_seconds_.reset();
  moved_bytes_ = busy_seconds_ = 0;
}

void TransitWindow::OnLost(uint64_t bytes, Time now) {
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
  return std::min(std::max(rate() * kQueueSeconds, Fill()), kBytesMax);
}

double TransitWindow::Fill() const {
  return std::min(rate() * kOfShortest * shortest_seconds_.value_or(0), kBytesMax);
}

uint32_t TransitWindow::Filling() const {
  if (largest_bytes_ == 0) return 0;
  const double messages = std::ceil(Fill() / static_cast<double>(largest_bytes_));
  return static_cast<uint32_t>(std::min(messages, kFillingMax));
}

}  // namespace leeway
