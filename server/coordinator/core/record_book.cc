#include "server/coordinator/core/record_book.h"

#include <algorithm>

namespace leeway {

bool RecordBook::Reserve(uint64_t incarnation) {
  if (incarnation <= incarnations_) return false;
  incarnations_ = incarnation + kIncarnationsAhead;
  return true;
}

void RecordBook::Written(const v1::CoordinatorRecord& record) {
  begun_ |= record.steps_per_epoch() > 0;
  newest_ = std::max(newest_, std::pair(record.generation(), record.placement().epoch()));
  durable_incarnations_ = std::max<uint64_t>(durable_incarnations_, record.incarnations());
  programs_keep_state_ |= record.programs_keep_state();
  loss_scales_.Written(record);
}

}  // namespace leeway
