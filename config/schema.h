// How the messages of job.proto read in YAML: the keys, types and texts behind their descriptors.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/descriptor.h>

#include "leeway/v1/options.pb.h"

namespace leeway {

// Of a field: its options, its key.
const v1::FieldRules& RulesOf(const google::protobuf::FieldDescriptor& field);
std::string KeyOf(const google::protobuf::FieldDescriptor& field);

// The oneof whose member the key `type` names; nullptr for a message without one.
const google::protobuf::OneofDescriptor* TypeOf(const google::protobuf::Descriptor& message);
bool IsTypeMember(const google::protobuf::FieldDescriptor& field);

// Fields that are keys of the message's own map: all but the members of `type`.
std::vector<const google::protobuf::FieldDescriptor*> OwnFields(
    const google::protobuf::Descriptor& message);
const google::protobuf::FieldDescriptor* FindOwn(const google::protobuf::Descriptor& message,
                                                 std::string_view key);
// The member of `type`, nullptr if there is none of this name.
const google::protobuf::FieldDescriptor* FindMember(const google::protobuf::OneofDescriptor& type,
                                                    std::string_view name);
// A field by its key, whatever its case: the message's own, or of any member of `type`.
const google::protobuf::FieldDescriptor* FindAnyCase(const google::protobuf::Descriptor& message,
                                                     std::string_view key);

// The text of an enum's value: sync for CONSISTENCY_MODE_SYNC.
std::string TextOf(const google::protobuf::EnumValueDescriptor& value);
std::vector<std::string> TextsOf(const google::protobuf::EnumDescriptor& type);
std::vector<std::string> TypeNames(const google::protobuf::OneofDescriptor& type);

}  // namespace leeway
