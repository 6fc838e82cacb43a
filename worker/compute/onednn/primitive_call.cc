#include "worker/compute/onednn/primitive_call.h"

// A function of the OpenMP library that oneDNN is built with. Only g++ has a header for it.
extern "C" void omp_set_num_threads(int threads);

namespace leeway {

void StayOneThread() {
  // OpenMP keeps this number for each thread separately.
  thread_local const bool set = [] {
    omp_set_num_threads(1);
    return true;
  }();
  static_cast<void>(set);
}

bool PrimitiveCall::is_fast() const {
  const std::string_view name = description_.impl_info_str();
  return name.find("ref") == name.npos && name.find("gemm") == name.npos;
}

void PrimitiveCall::Point(int argument, const float* data) {
  void* const handle = const_cast<float*>(data);
  const auto [entry, is_new] = arguments_.try_emplace(argument);
  if (is_new) {
    entry->second = dnnl::memory(layout(argument), description_.get_engine(), handle);
  } else {
    entry->second.set_data_handle(handle);
  }
}

void PrimitiveCall::Run(const dnnl::stream& stream) {
  if (!primitive_) primitive_ = dnnl::primitive(description_.get());
  primitive_.execute(stream, arguments_);
}

}  // namespace leeway
