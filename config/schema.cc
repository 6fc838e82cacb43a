#include "config/schema.h"

#include <cctype>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace leeway {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::OneofDescriptor;

const v1::FieldRules& RulesOf(const FieldDescriptor& field) {
  return field.options().GetExtension(v1::rules);
}

std::string KeyOf(const FieldDescriptor& field) {
  const v1::FieldRules& rules = RulesOf(field);
  return rules.has_key() ? rules.key() : field.name();
}

const OneofDescriptor* TypeOf(const Descriptor& message) {
  for (int i = 0; i < message.oneof_decl_count(); ++i) {
    if (message.oneof_decl(i)->name() == "type") return message.oneof_decl(i);
  }
  return nullptr;
}

bool IsTypeMember(const FieldDescriptor& field) {
  const OneofDescriptor* oneof = field.containing_oneof();
  return oneof != nullptr && oneof->name() == "type";
}

std::vector<const FieldDescriptor*> OwnFields(const Descriptor& message) {
  std::vector<const FieldDescriptor*> fields;
  for (int i = 0; i < message.field_count(); ++i) {
    if (!IsTypeMember(*message.field(i))) fields.push_back(message.field(i));
  }
  return fields;
}

const FieldDescriptor* FindOwn(const Descriptor& message, std::string_view key) {
  for (const FieldDescriptor* field : OwnFields(message)) {
    if (KeyOf(*field) == key) return field;
  }
  return nullptr;
}

const FieldDescriptor* FindMember(const OneofDescriptor& type, std::string_view name) {
  for (int i = 0; i < type.field_count(); ++i) {
    if (type.field(i)->name() == name) return type.field(i);
  }
  return nullptr;
}

const FieldDescriptor* FindAnyCase(const Descriptor& message, std::string_view key) {
  const auto find = [key](const Descriptor& type) -> const FieldDescriptor* {
    for (const FieldDescriptor* field : OwnFields(type)) {
      if (absl::EqualsIgnoreCase(KeyOf(*field), std::string(key))) return field;
    }
    return nullptr;
  };
  const FieldDescriptor* found = find(message);
  const OneofDescriptor* type = TypeOf(message);
  for (int i = 0; found == nullptr && type != nullptr && i < type->field_count(); ++i) {
    found = find(*type->field(i)->message_type());
  }
  return found;
}

std::string TextOf(const EnumValueDescriptor& value) {
  // The prefix is the enum's name in upper case, with an underscore before each inner capital and
  // one at the end.
  size_t prefix = 0;
  for (const char c : value.type()->name()) prefix += absl::ascii_isupper(c) ? 2 : 1;
  return absl::AsciiStrToLower(value.name().substr(prefix));
}

std::vector<std::string> TextsOf(const EnumDescriptor& type) {
  std::vector<std::string> texts;
  for (int i = 0; i < type.value_count(); ++i) texts.push_back(TextOf(*type.value(i)));
  return texts;
}

std::vector<std::string> TypeNames(const OneofDescriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.field_count(); ++i) names.emplace_back(type.field(i)->name());
  return names;
}

}  // namespace leeway
