#include "common/rpc/connection_table.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <spdlog/spdlog.h>

namespace leeway {
namespace {

// The shortest time between two checks of all entries, however many new connections arrive.
constexpr Duration kLookForGoneEvery = std::chrono::milliseconds(100);
constexpr Duration kComplainEvery = std::chrono::minutes(1);
constexpr Duration kSuspectFor = std::chrono::minutes(1);
constexpr Duration kPatience = std::chrono::seconds(1);
constexpr Duration kSuspectPatience = std::chrono::milliseconds(100);
// The upper limits of the lists of loud peers and of hosts, however many peers and hosts there are.
constexpr size_t kLoudMax = 10'000;
constexpr size_t kHostsMax = 10'000;

}  // namespace

std::string HostOfPeer(const std::string& peer) { return peer.substr(0, peer.rfind(':')); }

void ConnectionTable::SetMost(size_t most) {
  MutexLock lock(mutex_);
  most_ = most;
}

bool ConnectionTable::Add(int socket, const std::string& peer, Time now) {
  MutexLock lock(mutex_);
  // An existing entry with the same socket or peer is of a closed connection, because the system
  // reuses the number of a socket, or a pair of addresses, only after the connection is closed.
  if (const auto gone = entries_.find(socket); gone != entries_.end()) Forget(gone);
  if (const auto gone = by_peer_.find(peer); gone != by_peer_.end()) {
    Forget(entries_.find(gone->second));
  }
  if (entries_.size() >= most_) {
    const bool room = MakeRoom(now);
    if (!room) {
      Complain(peer, now);
      return false;
    }
  }
  const uint64_t number = next_number_++;
  entries_[socket] = {peer, number};
  by_peer_[peer] = socket;
  strangers_[number] = socket;
  return true;
}

ConnectionTable::Host& ConnectionTable::HostOf(const std::string& peer, Time now) {
  const std::string host = HostOfPeer(peer);
  if (hosts_.size() >= kHostsMax && !hosts_.contains(host)) hosts_.clear();
  const Host all_free{.connections = static_cast<double>(most_), .at = now};
  return hosts_.try_emplace(host, all_free).first->second;
}

int ConnectionTable::TalkersOf(const std::string& peer, Time now) const {
  const auto host = hosts_.find(HostOfPeer(peer));
  return host != hosts_.end() && now < host->second.suspect_until ? host->second.talkers : 0;
}

bool ConnectionTable::MayCome(const std::string& peer, Time now) {
  MutexLock lock(mutex_);
  Host& host = HostOf(peer, now);
  const double since = Seconds(now - std::exchange(host.at, now));
  host.connections =
      std::min(static_cast<double>(most_), host.connections + since * kConnectsPerSecond);
  if (host.connections < 1) return false;
  host.connections -= 1;
  return true;
}

void ConnectionTable::TurnAway(const std::string& peer, Time now) {
  MutexLock lock(mutex_);
  ++of_crowds_;
  if (now < next_crowd_complaint_) return;
  next_crowd_complaint_ = now + kComplainEvery;
  spdlog::warn(
      "{} opens more than {} connections a second without an admitted call: one of them was closed "
      "({} so far, from all hosts)",
      HostOfPeer(peer), kConnectsPerSecond, of_crowds_);
}

bool ConnectionTable::MakeRoom(Time now) {
  ForgetGone(now);
  if (entries_.size() < most_) return true;
  if (strangers_.empty()) return false;
  const auto oldest = entries_.find(strangers_.begin()->second);
  if (sockets_.is_open(oldest->first, oldest->second.peer)) {
    sockets_.end(oldest->first);
    Complain(oldest->second.peer, now);
  }
  Forget(oldest);
  return true;
}

void ConnectionTable::LetIn(const std::string& peer) {
  MutexLock lock(mutex_);
  const auto socket = by_peer_.find(peer);
  if (socket == by_peer_.end()) return;
  Entry& entry = entries_.find(socket->second)->second;
  if (entry.number == 0) return;
  strangers_.erase(std::exchange(entry.number, 0));
  sockets_.let_in(socket->second);
  loud_.erase(peer);
  const auto host = hosts_.find(HostOfPeer(peer));
  if (host != hosts_.end()) host->second.connections += 1;
}

uint64_t ConnectionTable::turned_away() const {
  MutexLock lock(mutex_);
  return turned_away_;
}

uint64_t ConnectionTable::of_crowds() const {
  MutexLock lock(mutex_);
  return of_crowds_;
}

uint64_t ConnectionTable::talkers() const {
  MutexLock lock(mutex_);
  return talkers_;
}

bool ConnectionTable::EndTalkers(Time now) {
  MutexLock lock(mutex_);
  for (auto stranger = strangers_.begin(); stranger != strangers_.end();) {
    const auto entry = entries_.find((stranger++)->second);
    if (MayTalk(sockets_.traffic(entry->first), entry->second.peer, now)) continue;
    EndTalker(entry, now);
  }
  return !strangers_.empty();
}

bool ConnectionTable::EndStranger(const std::string& peer, Time now) {
  MutexLock lock(mutex_);
  const auto socket = by_peer_.find(peer);
  if (socket == by_peer_.end()) return false;
  const auto entry = entries_.find(socket->second);
  if (entry->second.number == 0) return false;
  EndTalker(entry, now);
  return true;
}

bool ConnectionTable::MayTalk(Traffic traffic, const std::string& peer, Time now) {
  if (traffic.sent > kAnswerBytes) return false;
  const uint64_t bytes = traffic.received;
  const int talkers = TalkersOf(peer, now);
  if (bytes > (talkers < kKnownTalkers ? stranger_bytes_ : kKnownBytes)) return false;
  if (bytes <= std::min(stranger_bytes_, kLoudBytes)) return true;
  if (loud_.size() >= kLoudMax) loud_.clear();
  const Time since = loud_.try_emplace(peer, now).first->second;
  return now - since < (talkers > 0 ? kSuspectPatience : kPatience);
}

void ConnectionTable::EndTalker(Entries::iterator entry, Time now) {
  const int socket = entry->first;
  const std::string peer = entry->second.peer;
  Forget(entry);
  if (!sockets_.is_open(socket, peer)) return;
  sockets_.end(socket);
  ++talkers_;
  Host& from = HostOf(peer, now);
  from.talkers = TalkersOf(peer, now) + 1;
  from.suspect_until = now + kSuspectFor;
  from.connections = std::max(-kConnectsPerSecond, from.connections - kTalkerConnects);
  if (now < next_talker_complaint_) return;
  next_talker_complaint_ = now + kComplainEvery;
  spdlog::warn(
      "closed a connection from {}: none of its calls was admitted, and it has sent, requested or "
      "begun more than an admitted peer would ({} such connections so far)",
      HostOfPeer(peer), talkers_);
}

void ConnectionTable::Forget(Entries::iterator entry) {
  loud_.erase(entry->second.peer);
  by_peer_.erase(entry->second.peer);
  if (entry->second.number != 0) strangers_.erase(entry->second.number);
  entries_.erase(entry);
}

void ConnectionTable::ForgetGone(Time now) {
  if (now < next_look_) return;
  next_look_ = now + kLookForGoneEvery;
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto here = entry++;
    if (!sockets_.is_open(here->first, here->second.peer)) Forget(here);
  }
}

void ConnectionTable::Complain(const std::string& peer, Time now) {
  ++turned_away_;
  if (now < next_complaint_) return;
  next_complaint_ = now + kComplainEvery;
  spdlog::warn(
      "the limit of {} connections is reached: closed a connection from {} ({} so far). {} "
      "connections have no admitted call yet and are closed first. If the job needs more "
      "connections, {}",
      most_, HostOfPeer(peer), turned_away_, strangers_.size(), advice_);
}

size_t ConnectionsMost(uint64_t of_job, uint64_t files) {
  return static_cast<size_t>(std::min(2 * of_job + kOtherConnections, files - files / 4));
}

}  // namespace leeway
