// A primitive of oneDNN with its arguments.
#pragma once

#include <string_view>
#include <unordered_map>

#include <oneapi/dnnl/dnnl.hpp>

namespace leeway {

// oneDNN would take as many OpenMP threads as there are processors. Each of ours works by itself
// instead: to be called in a thread before it describes, makes or runs primitives.
void StayOneThread();

// A primitive that is made when it is first run. Its arguments are pointed at memory before each
// run. Not thread-safe. Throws dnnl::error.
class PrimitiveCall {
 public:
  explicit PrimitiveCall(const dnnl::primitive_desc_base& description)
      : description_(description) {}

  const dnnl::primitive_desc_base& description() const { return description_; }
  // False where oneDNN has plain loops or copies patches.
  bool is_fast() const;
  // Of oneDNN's numbers of arguments, such as DNNL_ARG_SRC.
  dnnl::memory::desc layout(int argument) const {
    return description_.query_md(dnnl::query::exec_arg_md, argument);
  }
  size_t scratchpad_bytes() const { return layout(DNNL_ARG_SCRATCHPAD).get_size(); }
  // `data` is only read where the primitive only reads it.
  void Point(int argument, const float* data);
  void Run(const dnnl::stream& stream);

 private:
  dnnl::primitive_desc_base description_;
  dnnl::primitive primitive_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

}  // namespace leeway
