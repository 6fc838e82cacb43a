#include "common/job_key.h"

#include "common/status.h"
#include "tests/catch.h"

namespace leeway::job_key {
namespace {

TEST_CASE("an error's key begins its message, and grows from the inside") {
  const absl::Status error = absl::InvalidArgumentError("f.csv:1: no column 9");
  CHECK(KeyOf(error).empty());
  CHECK(MessageWithoutKey(error) == "f.csv:1: no column 9");
  const absl::Status inner = AtKey(error, "label_column");
  const absl::Status outer = AtKey(inner, "data.train");
  CHECK(absl::IsInvalidArgument(outer));
  CHECK(inner.message() == "label_column: f.csv:1: no column 9");
  CHECK(outer.message() == "data.train.label_column: f.csv:1: no column 9");
  CHECK(KeyOf(outer) == "data.train.label_column");
  CHECK(MessageWithoutKey(outer) == "f.csv:1: no column 9");
  CHECK(AtKey(absl::OkStatus(), "data").ok());
}

}  // namespace
}  // namespace leeway::job_key
