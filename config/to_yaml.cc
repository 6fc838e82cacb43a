// Writes a job as YAML: the inverse of config/decode.h.
#include <map>
#include <string>
#include <vector>

#include <google/protobuf/descriptor.h>
#include <yaml-cpp/emitter.h>
#include <yaml-cpp/emittermanip.h>

#include "absl/strings/str_cat.h"
#include "config/brought_update.h"
#include "config/job.h"
#include "config/scalar.h"
#include "config/schema.h"

namespace leeway {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

namespace {

// The largest number of values that a map on one line may have.
constexpr int kValuesInLine = 7;

class YamlWriter {
 public:
  // If `in_line` is true, writes the whole message on one line.
  explicit YamlWriter(bool in_line = false) : in_line_(in_line) {}

  std::string Write(const Message& job) {
    WriteMap(job);
    return absl::StrCat(out_.c_str(), "\n");
  }

 private:
  // Returns the fields that are set: the fields of the chosen type, then the message's own fields.
  static std::vector<std::pair<const Message*, const FieldDescriptor*>> FieldsOf(
      const Message& message) {
    std::vector<std::pair<const Message*, const FieldDescriptor*>> fields;
    const Reflection& reflection = *message.GetReflection();
    if (const auto* type = TypeOf(*message.GetDescriptor()); type != nullptr) {
      if (const auto* member = reflection.GetOneofFieldDescriptor(message, type)) {
        fields = FieldsOf(reflection.GetMessage(message, member));
      }
    }
    for (const FieldDescriptor* field : OwnFields(*message.GetDescriptor())) {
      const bool is_set = field->is_repeated() ? reflection.FieldSize(message, field) > 0
                                               : reflection.HasField(message, field);
      if (is_set) fields.push_back({&message, field});
    }
    return fields;
  }

  // Counts the values in the message and in the messages within it. A list counts as one value, but
  // a list of maps counts as more than kValuesInLine.
  static int ValuesIn(const Message& message) {
    int count = TypeOf(*message.GetDescriptor()) == nullptr ? 0 : 1;
    for (const auto& [owner, field] : FieldsOf(message)) {
      if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
        ++count;
      } else if (field->is_map()) {
        count += owner->GetReflection()->FieldSize(*owner, field);
      } else if (field->is_repeated()) {
        return kValuesInLine + 1;
      } else {
        count += ValuesIn(owner->GetReflection()->GetMessage(*owner, field));
      }
    }
    return count;
  }

  void WriteMap(const Message& message) {
    const bool is_layer = message.GetDescriptor() == v1::Layer::descriptor();
    if (in_line_ || (!is_layer && ValuesIn(message) <= kValuesInLine)) out_ << YAML::Flow;
    out_ << YAML::BeginMap;
    const Reflection& reflection = *message.GetReflection();
    if (const auto* type = TypeOf(*message.GetDescriptor()); type != nullptr) {
      if (const auto* member = reflection.GetOneofFieldDescriptor(message, type)) {
        out_ << YAML::Key << "type" << YAML::Value << std::string(member->name());
      }
    }
    for (const auto& [owner, field] : FieldsOf(message)) {
      out_ << YAML::Key << KeyOf(*field) << YAML::Value;
      if (field->is_map()) {
        WriteNumbers(*owner, *field);
      } else if (field->is_repeated()) {
        WriteList(*owner, *field);
      } else {
        WriteValue(*owner, *field, -1);
      }
    }
    out_ << YAML::EndMap;
  }

  // Writes the numbers in the order of their names, so that the same job has the same YAML.
  void WriteNumbers(const Message& message, const FieldDescriptor& field) {
    std::map<std::string, double> numbers;
    for (int i = 0; i < message.GetReflection()->FieldSize(message, &field); ++i) {
      const Message& number = message.GetReflection()->GetRepeatedMessage(message, &field, i);
      const Reflection& reflection = *number.GetReflection();
      const auto* type = number.GetDescriptor();
      numbers[reflection.GetString(number, type->map_key())] =
          reflection.GetDouble(number, type->map_value());
    }
    out_ << YAML::BeginMap;
    for (const auto& [name, value] : numbers) {
      out_ << YAML::Key << name << YAML::Value << FormatNumber(value);
    }
    out_ << YAML::EndMap;
  }

  void WriteList(const Message& message, const FieldDescriptor& field) {
    if (field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) out_ << YAML::Flow;
    out_ << YAML::BeginSeq;
    for (int i = 0; i < message.GetReflection()->FieldSize(message, &field); ++i) {
      WriteValue(message, field, i);
    }
    out_ << YAML::EndSeq;
  }

  // Writes a singular field, or element `index` of a list.
  void WriteValue(const Message& message, const FieldDescriptor& field, int index) {
    const Reflection& reflection = *message.GetReflection();
    const auto get = [&](auto single, auto repeated) -> decltype(auto) {
      return index < 0 ? (reflection.*single)(message, &field)
                       : (reflection.*repeated)(message, &field, index);
    };
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return WriteMap(index < 0 ? reflection.GetMessage(message, &field)
                                  : reflection.GetRepeatedMessage(message, &field, index));
      case FieldDescriptor::CPPTYPE_BOOL:
        return Put(get(&Reflection::GetBool, &Reflection::GetRepeatedBool) ? "true" : "false");
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return Put(FormatNumber(get(&Reflection::GetDouble, &Reflection::GetRepeatedDouble)));
      case FieldDescriptor::CPPTYPE_INT32:
        return Put(absl::StrCat(get(&Reflection::GetInt32, &Reflection::GetRepeatedInt32)));
      case FieldDescriptor::CPPTYPE_UINT32:
        return Put(absl::StrCat(get(&Reflection::GetUInt32, &Reflection::GetRepeatedUInt32)));
      case FieldDescriptor::CPPTYPE_UINT64:
        return Put(absl::StrCat(get(&Reflection::GetUInt64, &Reflection::GetRepeatedUInt64)));
      case FieldDescriptor::CPPTYPE_ENUM:
        return Put(TextOf(*get(&Reflection::GetEnum, &Reflection::GetRepeatedEnum)));
      case FieldDescriptor::CPPTYPE_STRING:
        return Put(get(&Reflection::GetString, &Reflection::GetRepeatedString));
      default:
        return;
    }
  }

  // The emitter adds quotes where they are needed.
  void Put(const std::string& text) { out_ << text; }

  const bool in_line_;
  YAML::Emitter out_;
};

bool IsDefault(const Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.GetBool(message, &field) == field.default_value_bool();
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.GetDouble(message, &field) == field.default_value_double();
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection.GetEnum(message, &field) == field.default_value_enum();
    default:
      return false;
  }
}

// Removes values that are the schema's defaults.
void DropDefaults(Message& message) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> set;
  reflection.ListFields(message, &set);
  for (const FieldDescriptor* field : set) {
    if (field->is_repeated()) continue;
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      DropDefaults(*reflection.MutableMessage(&message, field));
    } else if (field->has_default_value() && IsDefault(message, *field)) {
      reflection.ClearField(&message, field);
    }
  }
}

}  // namespace

std::string ToYaml(const v1::TrainingJob& job) { return YamlWriter().Write(job); }

std::string UpdateYaml(const v1::Update& update) {
  v1::Update shown = update;
  DropDefaults(shown);
  if (shown.schedule().has_constant() && !shown.schedule().has_warm_up()) shown.clear_schedule();
  std::string yaml = YamlWriter(true).Write(shown);
  yaml.pop_back();
  return yaml;
}

}  // namespace leeway
