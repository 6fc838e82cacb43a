// Makes strings from peers and files safe to show to people in terminals, logs, reports and error
// messages.
#pragma once

#include <cstddef>
#include <string>

#include <google/protobuf/message.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace leeway {

inline constexpr size_t kTextBytesMax = 1000;
// The most bytes of a host name or an address.
inline constexpr size_t kWordBytesMax = 255;

// Returns the text as one line that is harmless to a terminal: control characters, marks that
// change the writing direction, and bytes that are not UTF-8 become \n, \t or \xHH. The text is cut
// at `max` bytes, and "..." marks the cut. A second call on the result changes nothing.
std::string Printable(absl::string_view text, size_t max = kTextBytesMax);

// Returns OK if the text has at most `max` bytes and Printable() would not change it. Otherwise
// returns INVALID_ARGUMENT, naming the field.
absl::Status CheckPrintable(absl::string_view field, absl::string_view text,
                            size_t max = kWordBytesMax);

// Applies Printable() to each string in the message, at any depth. Fields of type bytes stay as
// they are.
void MakePrintable(google::protobuf::Message& message);

}  // namespace leeway
