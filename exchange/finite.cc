#include "exchange/finite.h"

#include "absl/strings/str_cat.h"
#include "common/element_name.h"
#include "common/wire/payload.h"

namespace leeway {

std::string NotFinite(const v1::ModelSchema& schema, const char* what, uint64_t first,
                      std::span<const float> values) {
  const size_t bad = FloatPayload::Of(values).FirstNonFinite();
  if (bad == values.size()) return "";
  return absl::StrCat(what, " of ", ElementName(schema, first + bad), " is ", values[bad]);
}

absl::Status CheckFinite(const v1::ModelSchema& schema, const char* what, uint64_t first,
                         std::span<const float> values) {
  const std::string wrong = NotFinite(schema, what, first, values);
  if (wrong.empty()) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat(wrong, kDivergedAdvice));
}

}  // namespace leeway
