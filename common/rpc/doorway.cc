#include "common/rpc/doorway.h"

#include <utility>

namespace leeway {

Doorway::Doorway(ConnectionTable* table, Sockets sockets)
    : table_(table), sockets_(std::move(sockets)) {}

Doorway::~Doorway() {
  for (const Waiting& each : waiting_) sockets_.refuse(each.socket);
}

void Doorway::Come(int socket, const std::string& peer, Time now) {
  if (table_->MayCome(peer, now)) return LetIn({socket, peer}, now);
  if (waiting_.size() >= kWaitingMost) {
    table_->TurnAway(waiting_.front().peer, now);
    sockets_.refuse(waiting_.front().socket);
    waiting_.pop_front();
  }
  waiting_.push_back({socket, peer});
}

bool Doorway::Look(Time now) {
  if (waiting_.empty() || now < next_look_) return !waiting_.empty();
  next_look_ = now + kLookEvery;
  std::deque<Waiting> still;
  for (Waiting& each : std::exchange(waiting_, {})) {
    if (sockets_.is_gone(each.socket)) {
      sockets_.refuse(each.socket);
    } else if (table_->MayCome(each.peer, now)) {
      LetIn(each, now);
    } else {
      still.push_back(std::move(each));
    }
  }
  waiting_ = std::move(still);
  return !waiting_.empty();
}

void Doorway::LetIn(const Waiting& connection, Time now) {
  if (table_->Add(connection.socket, connection.peer, now)) {
    sockets_.hand_over(connection.socket);
  } else {
    sockets_.refuse(connection.socket);
  }
}

}  // namespace leeway
