#include "launcher/plan/model_table.h"

#include <google/protobuf/text_format.h>

#include "tests/catch.h"
#include "worker/device/make_backend.h"

namespace leeway::model_table {
namespace {

TEST_CASE("A model's table has its layers in their order, with what each takes") {
  v1::Model config;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(
      "layers { name: \"block\" residual { layers { conv2d { filters: 3 kernel: 3 padding: 1 } } } "
      "} "
      "layers { batch_norm {} } layers { relu {} } layers { dense { units: 10 } } "
      "loss: LOSS_SOFTMAX_CROSS_ENTROPY",
      &config));
  const auto backend = MakeCpuBackend(v1::Workers());
  REQUIRE(backend.ok());
  const auto model = Model::Build(config, {8, 8, 3}, 10, **backend);
  REQUIRE(model.ok());
  // Counted by hand: a convolution with 3 x 3 x 3 x 3 weights and 3 biases, 2 x 81 x 64 operations,
  // and 4 x 8 x 8 x 3 floats for a batch. The batch norm's running statistics also count as
  // parameters.
  const std::string table = ModelTable(config, **model, 4);
  INFO(table);
  const std::string wanted =
      "  layer           kind        output     parameters  MFLOPs  activations\n"
      "  block.conv2d_0  conv2d      8 x 8 x 3          84   0.010     3.00 KiB\n"
      "  block           residual    8 x 8 x 3           -       -            -\n"
      "  batch_norm_1    batch_norm  8 x 8 x 3          12       -     3.06 KiB\n"
      "  relu_2          relu        8 x 8 x 3           -       -            -\n"
      "  dense_3         dense       10              1,930   0.004        192 B\n"
      "  all             5 layers                    2,026   0.014     6.25 KiB\n";
  CHECK(table.substr(0, wanted.size()) == wanted);
  CHECK_THAT(table, !Catch::Contains("for recompute"));
  CHECK_THAT(table, Catch::Contains("Parameters: 2,020 trained, 6 averaged; 7.91 KiB\n"));
  CHECK_THAT(table, Catch::Contains("Memory of a batch of 4 examples: 6.25 KiB activations, "));
}

TEST_CASE("A model's table says what layers that are computed again take together") {
  v1::Model config;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(
      "layers { repeat { times: 2 layers { recompute { layers { dense { units: 16 } } layers { "
      "gelu "
      "{} } } } } } layers { dense { units: 10 } } loss: LOSS_SOFTMAX_CROSS_ENTROPY",
      &config));
  const auto backend = MakeCpuBackend(v1::Workers());
  REQUIRE(backend.ok());
  const auto model = Model::Build(config, {1, 1, 16}, 10, **backend);
  REQUIRE(model.ok());
  // 16 floats for each of 16 examples: gelu's output is kept twice, and its input is kept once.
  const std::string table = ModelTable(config, **model, 16);
  INFO(table);
  CHECK_THAT(table,
             Catch::Contains("  repeat_0.0.recompute_0.dense_0  dense     16             272   "
                             "0.001            -\n"));
  CHECK_THAT(table,
             Catch::Contains("  repeat_0.0.recompute_0.gelu_1   gelu      16               -   "
                             "    -     1.00 KiB\n"));
  CHECK_THAT(table, Catch::Contains("activations, 1.00 KiB for recompute, "));
}

}  // namespace
}  // namespace leeway::model_table
