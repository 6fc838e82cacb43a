"""Makes messages with each of their fields missing or absurd, by reflection over the descriptors: a new field, message
or method is covered automatically."""

import math
import random

from google.protobuf.descriptor import FieldDescriptor as Field

LONG = 60_000_000
DEPTH = 4

UNSIGNED = {Field.CPPTYPE_UINT32: 32, Field.CPPTYPE_UINT64: 64}
SIGNED = {Field.CPPTYPE_INT32: 32, Field.CPPTYPE_INT64: 64}
FLOATS = (Field.CPPTYPE_DOUBLE, Field.CPPTYPE_FLOAT)
TEXTS = ["", "\x1b[2J\r\n\x07\u009b31m", "../x/../../evil", "%s%n" * 50, "x" * 1_000_000]


def values(field, draw):
    """Returns values that a correct sender never sends."""
    kind = field.cpp_type
    if kind in UNSIGNED:
        bits = UNSIGNED[kind]
        return [0, 77, 2**(bits - 1), 2**bits - 1, draw.getrandbits(bits)]
    if kind in SIGNED:
        bits = SIGNED[kind]
        return [0, -1, -2**(bits - 1), 2**(bits - 1) - 1]
    if kind in FLOATS:
        return [0.0, -1.0, 7.0, 1e300, math.nan, math.inf, -math.inf]
    if kind == Field.CPPTYPE_BOOL:
        return [False, True]
    if kind == Field.CPPTYPE_ENUM:
        # The job's enums are closed: Python accepts no number that they do not have.
        closed = field.enum_type.file.syntax == "proto2"
        return [value.number for value in field.enum_type.values] if closed else [-1, 9999]
    if field.type == Field.TYPE_BYTES:
        return [b"", b"\x00", draw.randbytes(997), b"\xff\xff\xff\xff" * 64]
    return TEXTS


def absurd(message, draw, once=(), path="", depth=DEPTH):
    """Yields (name, value, a function that changes a copy of the whole message) for every field. `once`: names of
    fields that have already had their value of 60 MB."""
    for field in message.DESCRIPTOR.fields:
        name = f"{path}{field.name}"
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            yield from entries(field, name, draw)
        elif field.label == Field.LABEL_REPEATED:
            yield from repeated(message, field, name, draw, depth)
        elif field.cpp_type == Field.CPPTYPE_MESSAGE:
            yield name, "missing", lambda m, f=field: m.ClearField(f.name)
            yield name, "empty", lambda m, f=field: (m.ClearField(f.name), getattr(m, f.name).SetInParent())
            if depth > 0:
                for inner, value, change in absurd(getattr(message, field.name), draw, once, name + ".", depth - 1):
                    yield inner, value, lambda m, f=field, c=change: c(getattr(m, f.name))
        else:
            yield name, "missing", lambda m, f=field: m.ClearField(f.name)
            for value in values(field, draw):
                yield name, value, lambda m, f=field, v=value: setattr(m, f.name, v)
            if field.cpp_type == Field.CPPTYPE_STRING and name not in once:
                text = "x" * LONG if field.type == Field.TYPE_STRING else b"x" * LONG
                yield name, "60 MB", lambda m, f=field, v=text: setattr(m, f.name, v)


def entries(field, name, draw):
    """Returns entries for a map from texts to scalars."""
    def put(whole, pairs):
        for key, value in pairs:
            getattr(whole, field.name)[key] = value
    scalar = field.message_type.fields_by_name["value"]
    yield name, "too many", lambda m: put(m, [(str(i), values(scalar, draw)[0]) for i in range(1000)])
    for value in values(scalar, draw):
        yield f"{name}[x]", value, lambda m, v=value: put(m, [("x", v)])
    for key in TEXTS:
        yield name, key, lambda m, k=key: put(m, [(k, values(scalar, draw)[0])])


def repeated(message, field, name, draw, depth):
    yield name, "missing", lambda m: m.ClearField(field.name)
    if field.cpp_type != Field.CPPTYPE_MESSAGE:
        for value in values(field, draw):
            yield f"{name}[0]", value, lambda m, v=value: (m.ClearField(field.name),
                                                           getattr(m, field.name).append(v))
        many = [values(field, draw)[0]] * 100_000
        yield name, "too many", lambda m: getattr(m, field.name).extend(many)
        return
    yield name, "too many", lambda m: [getattr(m, field.name).add() for _ in range(1000)]
    first = getattr(message, field.name)
    inner_message = first[0] if first else field_class(message, field)

    def within(whole, change):
        items = getattr(whole, field.name)
        change(items[0] if items else items.add())
    if depth > 0:
        for inner, value, change in absurd(inner_message, draw, (), f"{name}[0].", depth - 1):
            if value != "60 MB":
                yield inner, value, lambda m, c=change: within(m, c)


def field_class(message, field):
    copy = type(message)()
    return getattr(copy, field.name).add()


def every(request, draw, once=()):
    """Yields (field's path, value, message) for a request that is as valid as the attacker can make it."""
    for name, value, change in absurd(request, draw, once):
        message = type(request)()
        message.CopyFrom(request)
        change(message)
        yield name, value, message


def seeded(seed):
    return random.Random(seed)
