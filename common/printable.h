// Text of peers and of files on its way to people: terminal, log, report, error texts.
#pragma once

#include <cstddef>
#include <string>

#include <google/protobuf/message.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace leeway {

inline constexpr size_t kTextBytesMax = 1000;
// Names of hosts, addresses.
inline constexpr size_t kWordBytesMax = 255;

// The text on one line that does nothing to a terminal: control characters, marks that turn the
// direction of writing, and what is not UTF-8 become \n, \t or \xHH. What is beyond `max` bytes
// goes, and "..." says so. Harmless when repeated.
std::string Printable(absl::string_view text, size_t max = kTextBytesMax);

// INVALID_ARGUMENT, naming the field, unless the text is printable as it is and short.
absl::Status CheckPrintable(absl::string_view field, absl::string_view text,
                            size_t max = kWordBytesMax);

// Every text within the message, however deep, is Printable; bytes stay.
void MakePrintable(google::protobuf::Message& message);

}  // namespace leeway
