#include "common/rpc/connection_table.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <spdlog/spdlog.h>

namespace leeway {
namespace {

// All entries are looked at no more often, whoever knocks.
constexpr Duration kLookForGoneEvery = std::chrono::milliseconds(100);
constexpr Duration kComplainEvery = std::chrono::minutes(1);
constexpr Duration kSuspectFor = std::chrono::minutes(1);
constexpr Duration kPatience = std::chrono::seconds(1);
constexpr Duration kSuspectPatience = std::chrono::milliseconds(100);
// However many there are.
constexpr size_t kSuspectsMax = 10'000;
constexpr size_t kHostsMax = 10'000;

}  // namespace

std::string HostOfPeer(const std::string& peer) { return peer.substr(0, peer.rfind(':')); }

void ConnectionTable::SetMost(size_t most) {
  MutexLock lock(mutex_);
  most_ = most;
}

bool ConnectionTable::Add(int socket, const std::string& peer, Time now) {
  MutexLock lock(mutex_);
  // The number was free for this one: the connection that had it is gone. So is one of the same
  // two ends.
  if (const auto gone = entries_.find(socket); gone != entries_.end()) Forget(gone);
  if (const auto gone = by_peer_.find(peer); gone != by_peer_.end()) {
    Forget(entries_.find(gone->second));
  }
  if (!MayCome(peer, now)) return false;
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

bool ConnectionTable::MayCome(const std::string& peer, Time now) {
  if (connects_per_second_ == 0) return true;
  const std::string host = HostOfPeer(peer);
  if (allowances_.size() >= kHostsMax && !allowances_.contains(host)) allowances_.clear();
  const auto most = static_cast<double>(most_);
  Allowance& allowed = allowances_.try_emplace(host, Allowance{most, now}).first->second;
  const double since = Seconds(now - std::exchange(allowed.at, now));
  allowed.connections = std::min(most, allowed.connections + since * connects_per_second_);
  if (allowed.connections < 1) {
    ComplainOfMany(host, now);
    return false;
  }
  allowed.connections -= 1;
  return true;
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
  suspects_.erase(peer);
  const auto allowed = allowances_.find(HostOfPeer(peer));
  if (allowed != allowances_.end()) allowed->second.connections += 1;
}

uint64_t ConnectionTable::turned_away() const {
  MutexLock lock(mutex_);
  return turned_away_;
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
  if (traffic.sent > answer_bytes_) return false;
  const uint64_t bytes = traffic.received;
  if (bytes <= std::min(stranger_bytes_, kSuspectBytes)) return true;
  if (bytes > stranger_bytes_) return false;
  if (suspects_.size() >= kSuspectsMax) suspects_.clear();
  const Time since = suspects_.try_emplace(peer, now).first->second;
  const auto host = suspects_.find(HostOfPeer(peer));
  const bool suspect = host != suspects_.end() && now < host->second;
  return now - since < (suspect ? kSuspectPatience : kPatience);
}

void ConnectionTable::EndTalker(Entries::iterator entry, Time now) {
  const int socket = entry->first;
  const std::string peer = entry->second.peer, host = HostOfPeer(peer);
  Forget(entry);
  if (!sockets_.is_open(socket, peer)) return;
  sockets_.end(socket);
  ++talkers_;
  suspects_[host] = now + kSuspectFor;
  const auto allowed = allowances_.find(host);
  if (allowed != allowances_.end()) {
    double& left = allowed->second.connections;
    left = std::max(-connects_per_second_, left - kTalkerConnects);
  }
  if (now < next_talker_complaint_) return;
  next_talker_complaint_ = now + kComplainEvery;
  spdlog::warn(
      "a connection from {} was closed: it has brought, asked for or begun more than a peer that "
      "may call, and no call on it was let in ({} such connections so far)",
      host, talkers_);
}

void ConnectionTable::Forget(Entries::iterator entry) {
  suspects_.erase(entry->second.peer);
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
      "there are as many connections as there may be, {}: one from {} was closed ({} so far). No "
      "call was let in yet on {} of them; such connections go first. If the job itself needs more, "
      "allow this process more files (ulimit -n)",
      most_, HostOfPeer(peer), turned_away_, strangers_.size());
}

void ConnectionTable::ComplainOfMany(const std::string& host, Time now) {
  ++turned_away_;
  if (now < next_complaint_) return;
  next_complaint_ = now + kComplainEvery;
  spdlog::warn(
      "{} opens more than {} connections a second on which no call is let in: one was closed ({} "
      "so far)",
      host, connects_per_second_, turned_away_);
}

size_t ConnectionsMost(uint64_t of_job, uint64_t files) {
  return static_cast<size_t>(std::min(2 * of_job + kOtherConnections, files - files / 4));
}

}  // namespace leeway
