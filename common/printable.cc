#include "common/printable.h"

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/utf8.h"

namespace leeway {
namespace {

bool IsHarmless(uint32_t code) {
  const bool control = code < 0x20 || (code >= 0x7f && code < 0xa0);
  // Line and paragraph separators, and marks that change the direction of the following text.
  const bool turns = (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ||
                     code == 0x200e || code == 0x200f;
  return !control && !turns;
}

std::string Escaped(absl::string_view bytes) {
  if (bytes == "\n") return "\\n";
  if (bytes == "\t") return "\\t";
  std::string escaped;
  for (const char byte : bytes) {
    absl::StrAppendFormat(&escaped, "\\x%02x", static_cast<uint8_t>(byte));
  }
  return escaped;
}

}  // namespace

std::string Printable(absl::string_view text, size_t max) {
  std::string printable;
  while (!text.empty()) {
    const std::optional<Character> first = FirstCharacter({text.data(), text.size()});
    const absl::string_view bytes = text.substr(0, first ? first->bytes : 1);
    const bool harmless = first && IsHarmless(first->code);
    const std::string next = harmless ? std::string(bytes) : Escaped(bytes);
    if (printable.size() + next.size() > max) {
      return printable + "...";
    }
    printable += next;
    text.remove_prefix(bytes.size());
  }
  return printable;
}

absl::Status CheckPrintable(absl::string_view field, absl::string_view text, size_t max) {
  if (text.size() <= max && Printable(text) == text) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      field, ": '", Printable(text, 40), "' (", text.size(), " bytes) is not allowed: use at most ",
      max, " bytes without control characters"));
}

void MakePrintable(google::protobuf::Message& message) {
  using Field = google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const Field*> fields;
  reflection.ListFields(message, &fields);
  for (const Field* field : fields) {
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (field->cpp_type() == Field::CPPTYPE_MESSAGE) {
        MakePrintable(field->is_repeated() ? *reflection.MutableRepeatedMessage(&message, field, i)
                                           : *reflection.MutableMessage(&message, field));
      } else if (field->type() == Field::TYPE_STRING && field->is_repeated()) {
        reflection.SetRepeatedString(&message, field, i,
                                     Printable(reflection.GetRepeatedString(message, field, i)));
      } else if (field->type() == Field::TYPE_STRING) {
        reflection.SetString(&message, field, Printable(reflection.GetString(message, field)));
      }
    }
  }
}

}  // namespace leeway
