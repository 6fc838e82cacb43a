#include "common/server_address.h"

#include <cstdint>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/printable.h"
#include "common/status.h"

namespace leeway {
namespace {

constexpr absl::string_view kAbstract = "unix-abstract:";

absl::Status Refuse(absl::string_view field, absl::string_view address, const char* wanted) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": '", address, "' is not ", wanted));
}

}  // namespace

absl::Status CheckServerAddress(absl::string_view field, absl::string_view address) {
  RETURN_IF_ERROR(CheckPrintable(field, address));
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  const bool good = colon != absl::string_view::npos && colon > 0 &&
                    absl::SimpleAtoi(address.substr(colon + 1), &port) && port > 0 && port <= 65535;
  const bool one_word = address.find_first_of(" /") == absl::string_view::npos;
  if (good && one_word) return absl::OkStatus();
  return Refuse(field, address, "HOST:PORT with a port of 1 to 65535");
}

absl::Status CheckLocalAddress(absl::string_view field, absl::string_view address) {
  RETURN_IF_ERROR(CheckPrintable(field, address));
  const bool good = address.substr(0, kAbstract.size()) == kAbstract &&
                    address.size() > kAbstract.size() &&
                    address.find('/') == absl::string_view::npos;
  if (good) return absl::OkStatus();
  return Refuse(field, address, "unix-abstract:NAME");
}

}  // namespace leeway
