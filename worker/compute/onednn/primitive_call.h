// A primitive of oneDNN with its arguments.
#pragma once

#include <string_view>
#include <unordered_map>

#include <oneapi/dnnl/dnnl.hpp>

namespace leeway {

// Makes oneDNN compute in the calling thread alone. Without this call, oneDNN would start as many
// OpenMP threads as there are processors. A thread must make this call before it describes, makes
// or runs primitives.
void StayOneThread();

// A primitive that is made when it first runs. The caller sets the memory of its arguments before
// each run. Not thread-safe. The methods throw dnnl::error.
class PrimitiveCall {
 public:
  explicit PrimitiveCall(const dnnl::primitive_desc_base& description)
      : description_(description) {}

  const dnnl::primitive_desc_base& description() const { return description_; }
  // Returns false if oneDNN would use plain loops or copy patches.
  bool is_fast() const;
  // Returns the layout of an argument. `argument` is one of oneDNN's numbers, such as DNNL_ARG_SRC.
  dnnl::memory::desc layout(int argument) const {
    return description_.query_md(dnnl::query::exec_arg_md, argument);
  }
  size_t scratchpad_bytes() const { return layout(DNNL_ARG_SCRATCHPAD).get_size(); }
  // Sets the memory of an argument. The primitive writes to `data` only if the argument is an
  // output.
  void Point(int argument, const float* data);
  void Run(const dnnl::stream& stream);

 private:
  dnnl::primitive_desc_base description_;
  dnnl::primitive primitive_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

}  // namespace leeway
