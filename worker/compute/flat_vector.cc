#include "worker/compute/flat_vector.h"

#include <memory>
#include <utility>

#include "common/status.h"

namespace leeway {

absl::StatusOr<FlatVector> FlatVector::Twins(Backend& backend, FloatBuffer host) {
  FlatVector vector(backend, host.size());
  vector.host_ = std::move(host);
  if (vector.shared()) return vector;
  vector.pinned_ = backend.Pin(vector.host_.span());
  ASSIGN_OR_RETURN(vector.device_, backend.Allocate(vector.size_));
  return vector;
}

absl::StatusOr<FlatVector> FlatVector::OnDevice(Backend& backend, size_t size) {
  FlatVector vector(backend, size);
  if (vector.shared()) {
    vector.host_ = FloatBuffer(size);
    return vector;
  }
  ASSIGN_OR_RETURN(vector.device_, backend.Allocate(size));
  backend.Fill(size, 0, vector.device_.get());
  return vector;
}

absl::Status FlatVector::Up(const ElementRange& elements) {
  if (shared()) return absl::OkStatus();
  backend_->CopyToDevice(Stream::kCompute, host().subspan(elements.offset, elements.count),
                         Device() + elements.offset);
  return backend_->Await(backend_->Record(Stream::kCompute));
}

absl::Status FlatVector::Down(const ElementRange& elements) {
  if (shared()) return absl::OkStatus();
  backend_->CopyToHost(Stream::kCompute, Device() + elements.offset,
                       host().subspan(elements.offset, elements.count));
  return backend_->Await(backend_->Record(Stream::kCompute));
}

StreamEvent FlatVector::StartUp(const ElementRange& elements) {
  if (shared()) return {};
  backend_->CopyToDevice(Stream::kUp, host().subspan(elements.offset, elements.count),
                         Device() + elements.offset);
  return backend_->Record(Stream::kUp);
}

StreamEvent FlatVector::StartDown(const ElementRange& elements) {
  if (shared()) return {};
  backend_->CopyToHost(Stream::kDown, Device() + elements.offset,
                       host().subspan(elements.offset, elements.count));
  return backend_->Record(Stream::kDown);
}

absl::StatusOr<FloatBuffer> FlatVector::Copy() const {
  if (shared()) {
    // The returned buffer does not own the memory, so the caller must not use it after this vector
    // is destroyed.
    float* const data = Device();
    return FloatBuffer(std::shared_ptr<float>(data, [](float*) {}), size_);
  }
  FloatBuffer copy(size_);
  backend_->CopyToHost(Stream::kCompute, Device(), copy.span());
  RETURN_IF_ERROR(backend_->Await(backend_->Record(Stream::kCompute)));
  return copy;
}

absl::Status FlatVector::Set(std::span<const float> values) {
  backend_->CopyToDevice(Stream::kCompute, values, Device());
  return backend_->Await(backend_->Record(Stream::kCompute));
}

}  // namespace leeway
