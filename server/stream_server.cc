#include "server/stream_server.h"

#include <algorithm>

#include "server/stream_session.h"

namespace leeway {

StreamServer::StreamServer(ParameterService* service, grpc::ServerBuilder& builder)
    : service_(service) {
  const uint32_t queues = std::clamp(std::thread::hardware_concurrency(), 1u, kQueuesMax);
  for (uint32_t i = 0; i < queues; ++i) queues_.push_back(builder.AddCompletionQueue());
}

StreamServer::~StreamServer() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  for (auto& queue : queues_) queue->Shutdown();
  for (std::thread& thread : threads_) thread.join();
  // A queue that was never served must be empty before it goes.
  void* tag;
  bool ok;
  if (threads_.empty()) {
    for (auto& queue : queues_) {
      while (queue->Next(&tag, &ok)) {
      }
    }
  }
}

void StreamServer::Start() {
  for (auto& queue : queues_) {
    Await(queue.get());
    threads_.emplace_back([this, &queue] { Loop(queue.get()); });
  }
}

void StreamServer::Await(grpc::ServerCompletionQueue* queue) {
  MutexLock lock(mutex_);
  if (!stopping_) StreamSession::Await(service_, queue);
}

void StreamServer::Loop(grpc::ServerCompletionQueue* queue) {
  void* tag = nullptr;
  bool ok = false;
  while (queue->Next(&tag, &ok)) {
    const auto* event = static_cast<StreamEvent*>(tag);
    // The next stream is awaited as soon as one has come. Not ok: the server ends.
    if (event->kind == StreamEvent::Kind::kAccepted && ok) Await(queue);
    event->session->OnEvent(event->kind, ok);
  }
}

}  // namespace leeway
