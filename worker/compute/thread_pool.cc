#include "worker/compute/thread_pool.h"

#include <algorithm>
#include <system_error>

namespace leeway {
namespace {

Time Now() { return std::chrono::steady_clock::now(); }

// Polls until `done` returns true, but gives up when it is no longer likely to return true soon.
template <typename Done>
void Poll(BriefWaits& waits, Time begun, const Done& done) {
  for (Time last = begun; waits.expected() && last - begun < BriefWaits::kLook && !done();) {
    const Time now = Now();
    waits.Looked(last, now);
    last = now;
  }
}

}  // namespace

ThreadPool::ThreadPool(uint32_t threads) : threads_(std::max(threads, 1u)) {
  try {
    for (uint32_t i = 1; i < threads_; ++i) helpers_.emplace_back([this, i] { Help(i); });
  } catch (const std::system_error&) {
    Stop();
    throw;
  }
}

ThreadPool::~ThreadPool() { Stop(); }

void ThreadPool::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    started_.NotifyAll();
  }
  for (std::thread& helper : helpers_) helper.join();
}

uint32_t ThreadPool::Parts(size_t count, size_t grain) const {
  const size_t wanted = count / std::max<size_t>(grain, 1);
  return static_cast<uint32_t>(std::clamp<size_t>(wanted, 1, threads_));
}

void ThreadPool::RunPart(const Loop& loop, uint32_t part) {
  const size_t begin = loop.count * part / loop.parts;
  const size_t end = loop.count * (part + 1) / loop.parts;
  if (begin < end) (*loop.body)(begin, end, part);
}

void ThreadPool::For(size_t count, size_t grain, Body body) {
  const Loop loop{&body, count, Parts(count, grain)};
  if (loop.parts == 1) {
    RunPart(loop, 0);
    return;
  }
  {
    MutexLock lock(mutex_);
    loop_ = loop;
    running_ = threads_ - 1;
    ++loops_;
    started_.NotifyAll();
  }
  RunPart(loop, 0);
  AwaitHelpers();
}

void ThreadPool::AwaitHelpers() {
  const Time begun = Now();
  Poll(waits_, begun, [this] { return running_ == 0; });
  {
    MutexLock lock(mutex_);
    while (running_ > 0) finished_.Wait(mutex_);
  }
  waits_.Waited(begun, Now(), false);
}

bool ThreadPool::AwaitLoop(BriefWaits& waits, uint64_t& seen, Loop& loop) {
  const Time begun = Now();
  Poll(waits, begun, [&] { return loops_ != seen; });
  {
    MutexLock lock(mutex_);
    while (loops_ == seen && !stopping_) started_.Wait(mutex_);
    if (stopping_) return false;
    seen = loops_;
    loop = loop_;
  }
  waits.Waited(begun, Now(), false);
  return true;
}

void ThreadPool::Help(uint32_t index) {
  BriefWaits waits;
  uint64_t seen = 0;
  Loop loop;
  while (AwaitLoop(waits, seen, loop)) {
    if (index < loop.parts) RunPart(loop, index);
    MutexLock lock(mutex_);
    if (--running_ == 0) finished_.NotifyOne();
  }
}

}  // namespace leeway
