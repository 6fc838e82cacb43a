// What a completion queue of gRPC's gives back, in servers and workers.
#pragma once

namespace leeway {

// The tag of an operation on the completion queue; lives until Run.
class QueueEvent {
 public:
  virtual ~QueueEvent() = default;
  // On a thread that takes from the queue. `ok` as gRPC says it.
  virtual void Run(bool ok) = 0;
};

// Calls a member function.
template <typename Object>
class MemberEvent : public QueueEvent {
 public:
  using Function = void (Object::*)(bool ok);
  MemberEvent(Object* object, Function function) : object_(object), function_(function) {}
  void Run(bool ok) override { (object_->*function_)(ok); }

 private:
  Object* const object_;
  const Function function_;
};

}  // namespace leeway
