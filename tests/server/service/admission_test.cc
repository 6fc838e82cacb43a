// The bound on what a server holds, and the contributions that it still lets in.
#include "server/shard/admission.h"

#include <memory>

#include "server/service/byte_budget.h"
#include "tests/catch.h"

namespace leeway::admission {
namespace {

TEST_CASE("what is held counts until the last reference to it is gone, also beyond the budget") {
  auto budget = std::make_unique<ByteBudget>(100);
  auto owner = std::make_shared<int>(1);
  const std::weak_ptr<int> kept = owner;
  std::shared_ptr<const void> first = budget->Hold(60, std::move(owner));
  CHECK_FALSE(budget->over());
  std::shared_ptr<const void> again = first;
  {
    const auto second = budget->Hold(41, nullptr);
    CHECK(budget->over());
    CHECK(budget->held() == 101);
  }
  CHECK_FALSE(budget->over());
  first.reset();
  CHECK(budget->held() == 60);
  CHECK(budget->load().held_bytes_max == 101);
  budget.reset();
  CHECK_FALSE(kept.expired());
  again.reset();
  CHECK(kept.expired());
}

TEST_CASE("a refusal is worth a line in the log at first, and then every ten seconds") {
  ByteBudget budget(1);
  CHECK(budget.CountRefused(1000));
  CHECK_FALSE(budget.CountRefused(1000));
  CHECK_FALSE(budget.CountRefused(1009));
  CHECK(budget.CountRefused(1010));
  CHECK(budget.load().refused_contributions == 4);
}

TEST_CASE("the oldest block is the lowest of the lowest version, in whatever order blocks go on") {
  Admission admission(3);
  CHECK(admission.Oldest() == 0);
  admission.OnVersion(1, 1);
  CHECK(admission.Oldest() == 0);
  admission.OnVersion(0, 1);
  CHECK(admission.Oldest() == 2);
  admission.OnVersion(0, 2);
  CHECK(admission.Oldest() == 2);
  admission.OnVersion(2, 1);
  CHECK(admission.Oldest() == 1);
}

TEST_CASE("blocks that come from a checkpoint at a late clock are not counted up to it") {
  Admission admission(2);
  const uint64_t late = uint64_t{1} << 60;
  admission.OnVersion(0, late + 1);
  admission.OnVersion(1, late);
  CHECK(admission.Oldest() == 1);
  admission.OnVersion(1, late + 1);
  CHECK(admission.Oldest() == 0);
}

}  // namespace
}  // namespace leeway::admission
