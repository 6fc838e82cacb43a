#include "config/decode.h"

#include <limits>
#include <map>
#include <vector>

#include <google/protobuf/descriptor.h>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/suggestion.h"
#include "config/scalar.h"
#include "config/schema.h"

namespace leeway {

using google::protobuf::Descriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::OneofDescriptor;
using google::protobuf::Reflection;

std::string JoinPath(const std::string& path, const std::string& key) {
  return path.empty() ? key : absl::StrCat(path, ".", key);
}

namespace {

const char* NameOf(YamlNode::Kind kind) {
  switch (kind) {
    case YamlNode::Kind::kNull:
      return "empty";
    case YamlNode::Kind::kScalar:
      return "a single value";
    case YamlNode::Kind::kList:
      return "a list";
    case YamlNode::Kind::kMap:
      return "a map";
  }
  return "unknown";
}

// Describes the map that the job should have here, for an error message. The job has the single
// value `given` instead. That value is often the type that the user means.
std::string WantedMap(const google::protobuf::Descriptor& map, const std::string& given) {
  if (map.field_count() == 0) return "a map, such as {}";
  const OneofDescriptor* type = TypeOf(map);
  if (type != nullptr) {
    const FieldDescriptor* meant = map.FindFieldByName(given);
    const bool known = meant != nullptr && meant->containing_oneof() == type;
    return absl::StrCat(
        "a map with a type, such as {type: ", (known ? meant : type->field(0))->name(), "}");
  }
  const FieldDescriptor& first = *map.field(0);
  if (first.cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    const std::vector<std::string> texts = TextsOf(*first.enum_type());
    const bool known = std::find(texts.begin(), texts.end(), given) != texts.end();
    return absl::StrCat("a map, such as {", first.name(), ": ", known ? given : texts.front(), "}");
  }
  std::vector<std::string> keys;
  for (int i = 0; i < map.field_count(); ++i) keys.emplace_back(map.field(i)->name());
  return absl::StrCat("a map of ", absl::StrJoin(keys, ", "));
}

// Describes what a field accepts, for an error message.
std::string Wanted(const FieldDescriptor& field, const std::string& given = "") {
  if (field.is_map()) return "a map of numbers by name, such as {beta: 0.9}";
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return "a number";
    case FieldDescriptor::CPPTYPE_STRING:
      return "a string";
    case FieldDescriptor::CPPTYPE_ENUM:
      return absl::StrCat("one of ", absl::StrJoin(TextsOf(*field.enum_type()), ", "));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return WantedMap(*field.message_type(), given);
    default:
      return "a whole number";
  }
}

// Reads a number of an integer type. If the number is out of bounds, the error has the field's
// bound or the type's bound, whichever is narrower.
template <typename Integer>
absl::StatusOr<Integer> ParseInteger(const std::string& text, const FieldDescriptor& field) {
  if (!IsWholeNumber(text)) {
    return absl::InvalidArgumentError(
        absl::StrCat("needs a whole number in decimal digits; it is '", text, "'"));
  }
  Integer value = 0;
  // "-0" is a valid 0, but SimpleAtoi refuses it for an unsigned type.
  if (text == "-0" || absl::SimpleAtoi(text, &value)) return value;
  const v1::FieldRules& rules = RulesOf(field);
  const bool low = text[0] == '-';
  std::string bound =
      absl::StrCat(low ? std::numeric_limits<Integer>::min() : std::numeric_limits<Integer>::max());
  if (low ? rules.has_min() : rules.has_max()) {
    bound = FormatNumber(low ? rules.min() : rules.max());
  }
  return absl::InvalidArgumentError(
      absl::StrCat("must be ", low ? "at least " : "at most ", bound, "; it is ", text));
}

class Decoder {
 public:
  explicit Decoder(Problems& problems) : problems_(problems) {}

  void DecodeMap(const YamlNode& node, const std::string& path, Message& message) {
    const bool has_type = TypeOf(*message.GetDescriptor()) != nullptr;
    const Chosen chosen = has_type ? DecodeType(node, path, message) : Chosen{};
    std::map<std::string, Origin> seen;
    for (const YamlEntry& entry : node.entries) {
      const std::string key_path = JoinPath(path, entry.key);
      const auto [first, is_new] = seen.insert({entry.key, entry.origin});
      if (!is_new) {
        problems_.Add(entry.origin, key_path, Duplicate(first->second));
      } else if (!has_type || entry.key != "type") {
        DecodeEntry(entry, key_path, message, chosen);
      }
    }
  }

 private:
  // The member that `type` names.
  struct Chosen {
    // nullptr if `type` names no member.
    Message* member = nullptr;
    Origin by;
  };

  static std::string Duplicate(const Origin& first) {
    if (first.line == 0) return "duplicate key";
    return absl::StrCat("duplicate key; the first is in line ", first.line);
  }

  void DecodeEntry(const YamlEntry& entry, const std::string& path, Message& message,
                   const Chosen& chosen) {
    const Descriptor& type = *message.GetDescriptor();
    if (const FieldDescriptor* own = FindOwn(type, entry.key); own != nullptr) {
      DecodeOwn(entry, path, *own, message);
      return;
    }
    Message* member = chosen.member;
    if (member == nullptr && TypeOf(type) != nullptr) return;  // The key may belong to any member.
    const FieldDescriptor* inner =
        member == nullptr ? nullptr : FindOwn(*member->GetDescriptor(), entry.key);
    if (inner != nullptr) {
      DecodeOwn(entry, path, *inner, *member);
    } else {
      problems_.Add(entry.origin, path, Unknown(entry.key, type, chosen));
    }
  }

  static std::string Unknown(const std::string& key, const Descriptor& type,
                             const Chosen& choice_made) {
    std::vector<std::string> known;
    if (choice_made.member == nullptr) {
      for (const FieldDescriptor* field : OwnFields(type)) known.push_back(KeyOf(*field));
      return absl::StrCat("unknown key", Suggestion(key, known));
    }
    const Descriptor& chosen = *choice_made.member->GetDescriptor();
    const OneofDescriptor& choice = *TypeOf(type);
    std::string chosen_name;
    std::vector<std::string> others;
    for (int i = 0; i < choice.field_count(); ++i) {
      const FieldDescriptor& other = *choice.field(i);
      if (other.message_type() == &chosen) chosen_name = other.name();
      if (FindOwn(*other.message_type(), key) != nullptr) others.push_back(other.name());
    }
    if (!others.empty()) {
      return absl::StrCat("does not go with type '", chosen_name, "'", ByOverride(choice_made.by),
                          "; it belongs to '", absl::StrJoin(others, "' and '"), "'");
    }
    known.push_back("type");
    for (const FieldDescriptor* field : OwnFields(chosen)) known.push_back(KeyOf(*field));
    for (const FieldDescriptor* field : OwnFields(type)) known.push_back(KeyOf(*field));
    return absl::StrCat("unknown key", Suggestion(key, known));
  }

  static std::string ByOverride(const Origin& by) {
    return by.source->is_override ? absl::StrCat(", which ", by.source->name, " chose") : "";
  }

  // Chooses the member that `type` names. If there is none, adds the problem and chooses nothing.
  Chosen DecodeType(const YamlNode& node, const std::string& path, Message& message) {
    const OneofDescriptor& choice = *TypeOf(*message.GetDescriptor());
    const std::string type_path = JoinPath(path, "type");
    const std::vector<std::string> names = TypeNames(choice);
    const YamlEntry* entry = node.Find("type");
    if (entry == nullptr) {
      problems_.Add(node.origin, type_path,
                    absl::StrCat("required key is missing; one of ", absl::StrJoin(names, ", ")));
      return {};
    }
    const YamlNode& value = entry->value;
    const FieldDescriptor* field =
        value.kind == YamlNode::Kind::kScalar ? FindMember(choice, value.text) : nullptr;
    if (field == nullptr) {
      problems_.Add(
          value.origin, type_path,
          value.kind == YamlNode::Kind::kScalar
              ? absl::StrCat("unknown type '", value.text, "'", Suggestion(value.text, names))
              : absl::StrCat("needs one of ", absl::StrJoin(names, ", "), "; it is ",
                             NameOf(value.kind)));
      return {};
    }
    return {message.GetReflection()->MutableMessage(&message, field), entry->origin};
  }

  void DecodeOwn(const YamlEntry& entry, const std::string& path, const FieldDescriptor& field,
                 Message& message) {
    const Reflection& reflection = *message.GetReflection();
    if (const OneofDescriptor* choice = field.containing_oneof(); choice != nullptr) {
      const FieldDescriptor* other = reflection.GetOneofFieldDescriptor(message, choice);
      if (other != nullptr) {
        problems_.Add(entry.origin, path,
                      absl::StrCat("does not go with '", KeyOf(*other), "'; give one of the two"));
        return;
      }
    }
    if (field.is_map()) {
      DecodeNumbers(entry.value, path, field, message);
    } else if (field.is_repeated()) {
      DecodeList(entry.value, path, field, message);
    } else {
      DecodeValue(entry.value, path, field, message);
    }
  }

  // Reads a map from names to numbers into a field.
  void DecodeNumbers(const YamlNode& node, const std::string& path, const FieldDescriptor& field,
                     Message& message) {
    if (node.kind != YamlNode::Kind::kMap) {
      problems_.Add(node.origin, path,
                    absl::StrCat("needs ", Wanted(field), "; it is ", NameOf(node.kind)));
      return;
    }
    std::map<std::string, Origin> seen;
    for (const YamlEntry& entry : node.entries) {
      const std::string key_path = JoinPath(path, entry.key);
      const auto [first, is_new] = seen.insert({entry.key, entry.origin});
      if (!is_new) {
        problems_.Add(entry.origin, key_path, Duplicate(first->second));
        continue;
      }
      Message& number = *message.GetReflection()->AddMessage(&message, &field);
      const Descriptor& type = *number.GetDescriptor();
      number.GetReflection()->SetString(&number, type.map_key(), entry.key);
      DecodeValue(entry.value, key_path, *type.map_value(), number);
    }
  }

  void DecodeList(const YamlNode& node, const std::string& path, const FieldDescriptor& field,
                  Message& message) {
    if (node.kind == YamlNode::Kind::kList) {
      for (size_t i = 0; i < node.items.size(); ++i) {
        DecodeValue(node.items[i], absl::StrCat(path, ".", i), field, message);
      }
    } else if (RulesOf(field).scalar_or_list() && node.kind == YamlNode::Kind::kScalar) {
      DecodeValue(node, path, field, message);
    } else {
      problems_.Add(node.origin, path, absl::StrCat("needs a list; it is ", NameOf(node.kind)));
    }
  }

  // Sets a singular field, or adds to a repeated one.
  void DecodeValue(const YamlNode& node, const std::string& path, const FieldDescriptor& field,
                   Message& message) {
    const bool is_message = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (node.kind != (is_message ? YamlNode::Kind::kMap : YamlNode::Kind::kScalar)) {
      problems_.Add(
          node.origin, path,
          absl::StrCat("needs ", Wanted(field, node.text), "; it is ", NameOf(node.kind)));
    } else if (is_message) {
      const Reflection& reflection = *message.GetReflection();
      DecodeMap(node, path,
                field.is_repeated() ? *reflection.AddMessage(&message, &field)
                                    : *reflection.MutableMessage(&message, &field));
    } else if (const absl::Status status = DecodeScalar(node, field, message); !status.ok()) {
      problems_.Add(node.origin, path, std::string(status.message()));
    }
  }

  static absl::Status DecodeScalar(const YamlNode& node, const FieldDescriptor& field,
                                   Message& message) {
    const bool is_text = field.cpp_type() == FieldDescriptor::CPPTYPE_STRING ||
                         field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM;
    if (node.quoted && !is_text) {
      return absl::InvalidArgumentError(
          absl::StrCat("needs ", Wanted(field), "; it is a string in quotes"));
    }
    const Reflection& reflection = *message.GetReflection();
    // Sets or adds, by the reflection methods of the field's type.
    const auto put = [&](auto set, auto add, const auto& value) {
      if (!value.ok()) return value.status();
      if (field.is_repeated()) {
        (reflection.*add)(&message, &field, *value);
      } else {
        (reflection.*set)(&message, &field, *value);
      }
      return absl::OkStatus();
    };
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_BOOL:
        return put(&Reflection::SetBool, &Reflection::AddBool, ParseBool(node.text));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return put(&Reflection::SetDouble, &Reflection::AddDouble, ParseNumber(node.text));
      case FieldDescriptor::CPPTYPE_INT32:
        return put(&Reflection::SetInt32, &Reflection::AddInt32,
                   ParseInteger<int32_t>(node.text, field));
      case FieldDescriptor::CPPTYPE_UINT32:
        return put(&Reflection::SetUInt32, &Reflection::AddUInt32,
                   ParseInteger<uint32_t>(node.text, field));
      case FieldDescriptor::CPPTYPE_UINT64:
        return put(&Reflection::SetUInt64, &Reflection::AddUInt64,
                   ParseInteger<uint64_t>(node.text, field));
      case FieldDescriptor::CPPTYPE_STRING:
        // `put` cannot do this: newer protobufs have two methods of this name.
        if (field.is_repeated()) {
          reflection.AddString(&message, &field, node.text);
        } else {
          reflection.SetString(&message, &field, node.text);
        }
        return absl::OkStatus();
      case FieldDescriptor::CPPTYPE_ENUM:
        return put(static_cast<void (Reflection::*)(Message*, const FieldDescriptor*,
                                                    const EnumValueDescriptor*) const>(
                       &Reflection::SetEnum),
                   &Reflection::AddEnum, ParseEnum(node.text, field));
      default:
        return absl::InternalError(absl::StrCat("no YAML for fields like ", field.full_name()));
    }
  }

  static absl::StatusOr<const EnumValueDescriptor*> ParseEnum(const std::string& text,
                                                              const FieldDescriptor& field) {
    for (int i = 0; i < field.enum_type()->value_count(); ++i) {
      const EnumValueDescriptor* value = field.enum_type()->value(i);
      if (TextOf(*value) == text) return value;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("unknown value '", text, "'", Suggestion(text, TextsOf(*field.enum_type()))));
  }

  Problems& problems_;
};

}  // namespace

void Decode(const YamlNode& node, const std::string& path, Message& message, Problems& problems) {
  Decoder(problems).DecodeMap(node, path, message);
}

}  // namespace leeway
