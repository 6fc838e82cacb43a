// A primitive of oneDNN with its arguments.
#pragma once

#include <string_view>
#include <unordered_map>

#include <oneapi/dnnl/dnnl.hpp>

namespace leeway {

// Limits oneDNN's work in this thread to the thread itself: oneDNN would otherwise start as many
// OpenMP threads as there are processors. A thread must call it before it describes, makes or runs
// primitives.
void StayOneThread();

// A primitive that is made at its first run. Its arguments are set to memory before each run. Not
// thread-safe. Throws dnnl::error.
class PrimitiveCall {
 public:
  explicit PrimitiveCall(const dnnl::primitive_desc_base& description)
      : description_(description) {}

  const dnnl::primitive_desc_base& description() const { return description_; }
  // False if oneDNN uses plain loops or copies patches.
  bool is_fast() const;
  // The layout of an argument. `argument` is one of oneDNN's numbers, such as DNNL_ARG_SRC.
  dnnl::memory::desc layout(int argument) const {
    return description_.query_md(dnnl::query::exec_arg_md, argument);
  }
  size_t scratchpad_bytes() const { return layout(DNNL_ARG_SCRATCHPAD).get_size(); }
  // Sets the memory of an argument. `data` is only written if the primitive writes the argument.
  void Point(int argument, const float* data);
  void Run(const dnnl::stream& stream);

 private:
  dnnl::primitive_desc_base description_;
  dnnl::primitive primitive_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

}  // namespace leeway
