// What a completion queue of gRPC's gives back, in servers and workers.
#pragma once

#include "common/hand_over.h"

namespace leeway {

// An operation on a completion queue. The queue orders the thread that begins it before the thread
// that takes it from there.
class QueueEvent {
 public:
  virtual ~QueueEvent() = default;
  // To begin the operation with; the event lives until it is run.
  void* Tag() {
    HandOver(this);
    return this;
  }
  // What a queue has given back, on the thread that took it. `ok` as gRPC says it.
  static void RunTag(void* tag, bool ok) {
    TakeOver(tag);
    static_cast<QueueEvent*>(tag)->Run(ok);
  }

 private:
  virtual void Run(bool ok) = 0;
};

// Calls a member function.
template <typename Object>
class MemberEvent : public QueueEvent {
 public:
  using Function = void (Object::*)(bool ok);
  MemberEvent(Object* object, Function function) : object_(object), function_(function) {}

 private:
  void Run(bool ok) override { (object_->*function_)(ok); }

  Object* const object_;
  const Function function_;
};

}  // namespace leeway
