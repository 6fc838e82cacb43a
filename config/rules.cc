#include "config/rules.h"

#include <cmath>

#include <google/protobuf/descriptor.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "config/decode.h"
#include "config/scalar.h"
#include "config/schema.h"

namespace leeway {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::OneofDescriptor;
using google::protobuf::Reflection;

namespace {

class RuleCheck {
 public:
  explicit RuleCheck(std::vector<Fault>& faults) : faults_(faults) {}

  void Check(const Message& message, const std::string& path) {
    const Descriptor& type = *message.GetDescriptor();
    for (int i = 0; i < type.oneof_decl_count(); ++i)
      CheckOneof(message, path, *type.oneof_decl(i));
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      // The plugin checks its own options.
      if (field.is_map()) continue;
      if (field.is_repeated()) {
        CheckList(message, JoinPath(path, KeyOf(field)), field);
      } else {
        CheckField(message, path, field);
      }
    }
  }

 private:
  void Add(const std::string& path, std::string message) {
    faults_.push_back({path, std::move(message)});
  }

  void CheckOneof(const Message& message, const std::string& path, const OneofDescriptor& oneof) {
    if (message.GetReflection()->HasOneof(message, &oneof)) return;
    const std::string names = absl::StrJoin(TypeNames(oneof), ", ");
    if (oneof.name() == "type") {
      Add(JoinPath(path, "type"), absl::StrCat("required key is missing; one of ", names));
    } else {
      Add(path, absl::StrCat("needs one of ", names));
    }
  }

  void CheckField(const Message& message, const std::string& path, const FieldDescriptor& field) {
    const Reflection& reflection = *message.GetReflection();
    const std::string key_path = JoinPath(path, KeyOf(field));
    if (!reflection.HasField(message, &field)) {
      if (RulesOf(field).required()) Add(key_path, "required key is missing");
    } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      Check(reflection.GetMessage(message, &field), IsTypeMember(field) ? path : key_path);
    } else {
      CheckValue(message, key_path, field, -1);
    }
  }

  void CheckList(const Message& message, const std::string& path, const FieldDescriptor& field) {
    const Reflection& reflection = *message.GetReflection();
    const v1::FieldRules& rules = RulesOf(field);
    const int size = reflection.FieldSize(message, &field);
    if (size == 0 && !rules.required()) return;
    if (static_cast<uint32_t>(size) < rules.min_items()) {
      Add(path, absl::StrCat("required: a list of at least ", rules.min_items(),
                             rules.min_items() == 1 ? " element" : " elements"));
    } else if (rules.has_max_items() && static_cast<uint32_t>(size) > rules.max_items()) {
      Add(path,
          absl::StrCat("has ", size, " elements; at most ", rules.max_items(), " are allowed"));
    }
    for (int i = 0; i < size; ++i) {
      const std::string item_path = absl::StrCat(path, ".", i);
      if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        Check(reflection.GetRepeatedMessage(message, &field, i), item_path);
      } else {
        CheckValue(message, item_path, field, i);
      }
    }
  }

  // Checks a single value, or element `index` of a list. -1 means a single value.
  void CheckValue(const Message& message, const std::string& path, const FieldDescriptor& field,
                  int index) {
    const Reflection& reflection = *message.GetReflection();
    const auto get = [&](auto single, auto repeated) {
      return index < 0 ? (reflection.*single)(message, &field)
                       : (reflection.*repeated)(message, &field, index);
    };
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        return CheckText(get(&Reflection::GetString, &Reflection::GetRepeatedString), path, field);
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return CheckNumber(get(&Reflection::GetDouble, &Reflection::GetRepeatedDouble), path,
                           field);
      case FieldDescriptor::CPPTYPE_INT32:
        return CheckNumber(get(&Reflection::GetInt32, &Reflection::GetRepeatedInt32), path, field);
      case FieldDescriptor::CPPTYPE_UINT32:
        return CheckNumber(get(&Reflection::GetUInt32, &Reflection::GetRepeatedUInt32), path,
                           field);
      case FieldDescriptor::CPPTYPE_UINT64:
        return CheckNumber(
            static_cast<double>(get(&Reflection::GetUInt64, &Reflection::GetRepeatedUInt64)), path,
            field);
      default:
        return;
    }
  }

  void CheckText(const std::string& text, const std::string& path, const FieldDescriptor& field) {
    const v1::FieldRules& rules = RulesOf(field);
    if (rules.has_only() && text != rules.only()) {
      Add(path, absl::StrCat("must be ", rules.only(), "; it is '", text, "'"));
    } else if (rules.not_empty() && text.empty()) {
      Add(path, "must not be empty");
    } else if (text.find('\0') != std::string::npos) {
      Add(path, "contains a NUL byte");
    }
  }

  void CheckNumber(double value, const std::string& path, const FieldDescriptor& field) {
    const v1::FieldRules& rules = RulesOf(field);
    const auto must = [&](const char* what, double bound) {
      Add(path, absl::StrCat("must be ", what, " ", FormatNumber(bound), "; it is ",
                             FormatNumber(value)));
    };
    if (!std::isfinite(value)) {
      Add(path, "must be a finite number");
    } else if (rules.has_min() && value < rules.min()) {
      must("at least", rules.min());
    } else if (rules.has_above() && value <= rules.above()) {
      must("above", rules.above());
    } else if (rules.has_max() && value > rules.max()) {
      must("at most", rules.max());
    } else if (rules.has_below() && value >= rules.below()) {
      must("below", rules.below());
    }
  }

  std::vector<Fault>& faults_;
};

}  // namespace

void CheckRules(const Message& message, const std::string& path, std::vector<Fault>& faults) {
  RuleCheck(faults).Check(message, path);
}

}  // namespace leeway
