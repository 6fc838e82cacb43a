#include "server/service/stream_list.h"

#include <chrono>
#include <utility>
#include <vector>

namespace leeway {
namespace {

// The time for which a stream without an owner may be silent. The largest first message takes a
// minute over 10 Mbit/s. (A stream also has no owner while its requests come before the server has
// a model, but such a stream is not silent.)
constexpr Duration kNobodysFor = std::chrono::minutes(2);
// The maximum number of streams without an owner. Each stream costs about 20 KiB. A larger job may
// exceed this if all its workers begin at the same moment. But each worker names itself within
// milliseconds, and a worker whose stream was ended begins another stream.
constexpr size_t kNobodysMax = 4096;

}  // namespace

void StreamList::SetLimits(const Limits& limits) {
  unread_bytes_max_ = limits.unread_bytes;
  MutexLock lock(mutex_);
  of_rank_max_ = limits.of_rank;
  of_servers_max_ = limits.of_servers;
}

StreamList::Ref StreamList::Move(const Ref& stream, uint64_t incarnation, Streams& to,
                                 size_t limit) {
  Streams*& at = all_[stream.get()];
  if (at != nullptr) at->erase(stream.get());
  at = &to;
  to[stream.get()] = {stream, incarnation};
  if (limit == 0 || to.size() <= limit) return nullptr;
  Ref oldest;
  for (const auto& [key, entry] : to) {
    Ref each = entry.stream.lock();
    const bool older =
        each != nullptr && (oldest == nullptr || each->last_heard() < oldest->last_heard());
    if (older) oldest = std::move(each);
  }
  // The stream no longer counts, even if its last operation is still under way.
  to.erase(oldest.get());
  all_.erase(oldest.get());
  return oldest;
}

void StreamList::Add(const Ref& stream) {
  Ref oldest;
  {
    MutexLock lock(mutex_);
    oldest = Move(stream, 0, nobodys_, kNobodysMax);
  }
  if (oldest != nullptr) oldest->End();
}

void StreamList::Remove(const Stream* stream) {
  MutexLock lock(mutex_);
  const auto found = all_.find(stream);
  if (found == all_.end()) return;
  found->second->erase(stream);
  all_.erase(found);
}

void StreamList::Belongs(uint32_t rank, uint64_t incarnation, const Ref& stream) {
  Ref oldest;
  {
    MutexLock lock(mutex_);
    Worker& worker = of_ranks_[rank];
    oldest = incarnation < worker.incarnation
                 ? Move(stream, 0, nobodys_, kNobodysMax)
                 : Move(stream, incarnation, worker.streams, of_rank_max_);
  }
  if (oldest != nullptr) oldest->End();
}

void StreamList::BelongsToServer(const Ref& stream) {
  Ref oldest;
  {
    MutexLock lock(mutex_);
    oldest = Move(stream, 0, of_servers_, of_servers_max_);
  }
  if (oldest != nullptr) oldest->End();
}

void StreamList::OnAttach(uint32_t rank, uint64_t incarnation) {
  std::vector<Ref> replaced;
  {
    MutexLock lock(mutex_);
    Worker& worker = of_ranks_[rank];
    if (incarnation <= worker.incarnation) return;
    worker.incarnation = incarnation;
    absl::erase_if(worker.streams, [&](const auto& each) REQUIRES(mutex_) {
      if (each.second.incarnation >= incarnation) return false;
      if (Ref stream = each.second.stream.lock()) replaced.push_back(std::move(stream));
      all_.erase(each.first);
      return true;
    });
  }
  for (const Ref& stream : replaced) stream->End();
}

void StreamList::Tick(Time now) {
  std::vector<Ref> silent;
  std::vector<Ref> all;
  {
    MutexLock lock(mutex_);
    for (const auto& [key, streams] : all_) {
      Ref stream = streams->at(key).stream.lock();
      if (stream == nullptr) continue;
      if (streams == &nobodys_ && now - stream->last_heard() > kNobodysFor)
        silent.push_back(stream);
      all.push_back(std::move(stream));
    }
  }
  for (const Ref& stream : silent) stream->End();
  for (const Ref& stream : all) stream->TakeBackUnread(now);
}

size_t StreamList::size() const {
  MutexLock lock(mutex_);
  return all_.size();
}

}  // namespace leeway
