#include "common/rpc/talker_watch.h"

namespace leeway {

TalkerWatch::TalkerWatch(ConnectionTable* table) : table_(table), thread_([this] { Run(); }) {}

TalkerWatch::~TalkerWatch() {
  {
    MutexLock lock(mutex_);
    over_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void TalkerWatch::Wake() {
  MutexLock lock(mutex_);
  came_ = true;
  changed_.NotifyAll();
}

void TalkerWatch::Run() {
  while (WaitForConnection()) {
    do {
      if (!WaitForNextLook()) return;
    } while (table_->EndTalkers(SteadyNow()));
  }
}

bool TalkerWatch::WaitForConnection() {
  MutexLock lock(mutex_);
  while (!came_ && !over_) changed_.Wait(mutex_);
  came_ = false;
  return !over_;
}

bool TalkerWatch::WaitForNextLook() {
  MutexLock lock(mutex_);
  const Time due = SteadyNow() + kEvery;
  while (!over_ && changed_.WaitUntil(mutex_, due)) {
  }
  return !over_;
}

}  // namespace leeway
