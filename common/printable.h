// Makes text from peers and files safe for people to read: in terminals, logs, reports, error
// texts.
#pragma once

#include <cstddef>
#include <string>

#include <google/protobuf/message.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace leeway {

inline constexpr size_t kTextBytesMax = 1000;
// For host names and addresses.
inline constexpr size_t kWordBytesMax = 255;

// Returns the text as one line that is harmless to a terminal: control characters, marks that
// change the writing direction, and bytes that are not UTF-8 become \n, \t or \xHH. The text is cut
// at `max` bytes, and "..." marks the cut. Applying it again changes nothing.
std::string Printable(absl::string_view text, size_t max = kTextBytesMax);

// INVALID_ARGUMENT, naming the field, unless the text is printable as it is and has at most `max`
// bytes.
absl::Status CheckPrintable(absl::string_view field, absl::string_view text,
                            size_t max = kWordBytesMax);

// Makes each text within the message Printable, at any depth; fields of type bytes stay as they
// are.
void MakePrintable(google::protobuf::Message& message);

}  // namespace leeway
