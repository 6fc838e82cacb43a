// How the messages of job.proto read in YAML: the keys, types and texts of their descriptors.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/descriptor.h>

#include "leeway/v1/options.pb.h"

namespace leeway {

// A field's rules, and its key.
const v1::FieldRules& RulesOf(const google::protobuf::FieldDescriptor& field);
std::string KeyOf(const google::protobuf::FieldDescriptor& field);

// The oneof whose member the key `type` names. nullptr for a message without one.
const google::protobuf::OneofDescriptor* TypeOf(const google::protobuf::Descriptor& message);
bool IsTypeMember(const google::protobuf::FieldDescriptor& field);

// Fields that are keys of the message's own map: all except the members of `type`.
std::vector<const google::protobuf::FieldDescriptor*> OwnFields(
    const google::protobuf::Descriptor& message);
const google::protobuf::FieldDescriptor* FindOwn(const google::protobuf::Descriptor& message,
                                                 std::string_view key);
// The member of `type` with this name. nullptr if no member has it.
const google::protobuf::FieldDescriptor* FindMember(const google::protobuf::OneofDescriptor& type,
                                                    std::string_view name);
// Finds a field by its key in any case: a field of the message, or of any member of `type`.
const google::protobuf::FieldDescriptor* FindAnyCase(const google::protobuf::Descriptor& message,
                                                     std::string_view key);

// The text of an enum's value: sync for CONSISTENCY_MODE_SYNC.
std::string TextOf(const google::protobuf::EnumValueDescriptor& value);
std::vector<std::string> TextsOf(const google::protobuf::EnumDescriptor& type);
std::vector<std::string> TypeNames(const google::protobuf::OneofDescriptor& type);

}  // namespace leeway
