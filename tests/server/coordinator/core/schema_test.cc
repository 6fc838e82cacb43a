#include "server/coordinator/core/schema.h"

#include <limits>

#include "tests/catch.h"
#include "tests/server/coordinator/core/scenario.h"

namespace leeway::schema {
namespace {

using Catch::Matchers::Contains;

std::string Refusal(const std::function<void(v1::ModelSchema&)>& spoil) {
  v1::ModelSchema schema = TestSchema();
  spoil(schema);
  const absl::Status status = ValidateSchema(schema);
  CHECK(absl::IsInvalidArgument(status));
  return std::string(status.message());
}

TEST_CASE("a sound schema is accepted, others are refused with what is wrong") {
  CHECK(ValidateSchema(TestSchema()).ok());
  CHECK_THAT(Refusal([](auto& schema) { schema.clear_tensors(); }), Contains("no tensors"));
  CHECK_THAT(Refusal([](auto& schema) { schema.set_total(51); }), Contains("total is 51"));
  CHECK_THAT(Refusal([](auto& schema) { schema.set_trained(41); }), Contains("trained is 41"));
  CHECK_THAT(Refusal([](auto& schema) { schema.mutable_tensors(1)->set_offset(39); }),
             Contains("'dense_0/bias' begins at element 39"));
  CHECK_THAT(Refusal([](auto& schema) { schema.mutable_tensors(1)->set_name("dense_0/weight"); }),
             Contains("named twice"));
  CHECK_THAT(Refusal([](auto& schema) { schema.mutable_tensors(1)->clear_name(); }),
             Contains("no name"));
  CHECK_THAT(Refusal([](auto& schema) { schema.mutable_tensors(0)->set_shape(0, 0); }),
             Contains("no elements"));
  CHECK_THAT(Refusal([](auto& schema) {
               schema.mutable_tensors(0)->set_shape(0, uint64_t{1} << 62);
               schema.mutable_tensors(0)->set_shape(1, uint64_t{1} << 62);
             }),
             Contains("larger than"));
  for (const double momentum : {0.0, -0.1, 1.5, std::numeric_limits<double>::quiet_NaN(),
                                std::numeric_limits<double>::infinity()}) {
    CHECK_THAT(Refusal([&](auto& schema) { schema.mutable_tensors(1)->set_momentum(momentum); }),
               Contains("'dense_0/bias' has a momentum of ") && Contains("in (0, 1]"));
  }
  CHECK_THAT(Refusal([](auto& schema) {
               schema.mutable_tensors(1)->set_kind(static_cast<v1::TensorKind>(99));
             }),
             Contains("'dense_0/bias' has the kind 99"));
}

}  // namespace
}  // namespace leeway::schema
