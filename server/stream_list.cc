#include "server/stream_list.h"

namespace leeway {

void StreamList::Add(const std::shared_ptr<Stream>& stream) {
  MutexLock lock(mutex_);
  all_.push_back(stream);
}

void StreamList::SetLimit(uint32_t streams_per_rank) {
  MutexLock lock(mutex_);
  limit_ = streams_per_rank;
}

void StreamList::Belongs(uint32_t rank, const std::shared_ptr<Stream>& stream) {
  std::shared_ptr<Stream> oldest;
  {
    MutexLock lock(mutex_);
    Streams& streams = of_ranks_[rank];
    std::erase_if(streams, [](const auto& each) { return each.expired(); });
    streams.push_back(stream);
    if (limit_ == 0 || streams.size() <= limit_) return;
    oldest = streams.front().lock();
    streams.erase(streams.begin());
  }
  if (oldest != nullptr) oldest->End();
}

void StreamList::Tick(Time now) {
  std::vector<std::shared_ptr<Stream>> live;
  {
    MutexLock lock(mutex_);
    std::erase_if(all_, [](const auto& each) { return each.expired(); });
    for (const auto& each : all_) {
      if (auto stream = each.lock()) live.push_back(std::move(stream));
    }
  }
  for (const auto& stream : live) stream->TakeBackUnread(now);
}

}  // namespace leeway
