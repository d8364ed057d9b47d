"""Generated from protocol/messages/metadata_records.py by tools/keep_generated.py: do not edit."""
from struct import Struct, pack, unpack_from
from struct import error as StructError
from protocol.codec_support import *
from protocol.messages.metadata_records import *
new = object.__new__
def _encode_FeatureLevelRecord_0():
    pack_hx = Struct('>hx').pack
    pack_h = Struct('>h').pack
    def encode(o):
        out = []
        w = out.append
        s1 = o.name.encode()
        n1 = len(s1) + 1
        w(BYTES[n1] if n1 < 128 else string_size(n1))
        w(s1)
        if not o.unknown_tags:
            w(pack_hx(o.feature_level))
        else:
            w(pack_h(o.feature_level))
            tags1 = dict(o.unknown_tags or ())
            w(tag_section(tags1))
        return b"".join(out)
    return encode
def _decode_FeatureLevelRecord_0():
    unpack_from_hB = Struct('>hB').unpack_from
    bad = DecodeErrors('FeatureLevelRecord v0', {8: 'name', 11: 'name', 24: 'FeatureLevelRecord (tagged fields)', 27: 'FeatureLevelRecord'})
    def decode(buf, pos=0):
        if buf.__class__ is not bytes:
            buf = bytes(buf)
        size = len(buf)
        try:
            o = new(FeatureLevelRecord)
            o.unknown_tags = None
            n1 = buf[pos]
            pos += 1
            if n1 > 127:
                n1, pos = read_uvarint(buf, pos - 1)
                if n1 > 32768:
                    raise bad.long('name', n1 - 1)
            if n1 > 1:
                end = pos + n1 - 1
                if end > size:
                    raise bad.cut('name', end - pos, size - pos)
                o.name = buf[pos:end].decode("utf-8", "replace")
                pos = end
            elif n1 == 1:
                o.name = ""
            else:
                raise bad.null('name')
            o.feature_level, tags1 = unpack_from_hB(buf, pos)
            pos += 3
            if tags1:
                o.unknown_tags, pos = read_tags(buf, pos - 1, bad, 'FeatureLevelRecord')
            return o, pos
        except (IndexError, StructError) as error:
            raise bad.short(error, size) from None
    return decode
def _encode_TopicRecord_0():
    pack_16sx = Struct('>16sx').pack
    pack_16s = Struct('>16s').pack
    def encode(o):
        out = []
        w = out.append
        s1 = o.name.encode()
        n1 = len(s1) + 1
        w(BYTES[n1] if n1 < 128 else string_size(n1))
        w(s1)
        if not o.unknown_tags:
            w(pack_16sx(o.topic_id))
        else:
            w(pack_16s(o.topic_id))
            tags1 = dict(o.unknown_tags or ())
            w(tag_section(tags1))
        return b"".join(out)
    return encode
def _decode_TopicRecord_0():
    unpack_from_16sB = Struct('>16sB').unpack_from
    bad = DecodeErrors('TopicRecord v0', {8: 'name', 11: 'name', 24: 'TopicRecord (tagged fields)', 27: 'TopicRecord'})
    def decode(buf, pos=0):
        if buf.__class__ is not bytes:
            buf = bytes(buf)
        size = len(buf)
        try:
            o = new(TopicRecord)
            o.unknown_tags = None
            n1 = buf[pos]
            pos += 1
            if n1 > 127:
                n1, pos = read_uvarint(buf, pos - 1)
                if n1 > 32768:
                    raise bad.long('name', n1 - 1)
            if n1 > 1:
                end = pos + n1 - 1
                if end > size:
                    raise bad.cut('name', end - pos, size - pos)
                o.name = buf[pos:end].decode("utf-8", "replace")
                pos = end
            elif n1 == 1:
                o.name = ""
            else:
                raise bad.null('name')
            o.topic_id, tags1 = unpack_from_16sB(buf, pos)
            pos += 17
            if tags1:
                o.unknown_tags, pos = read_tags(buf, pos - 1, bad, 'TopicRecord')
            return o, pos
        except (IndexError, StructError) as error:
            raise bad.short(error, size) from None
    return decode
def _encode_ConfigRecord_0():
    pack_bB = Struct('>bB').pack
    pack_b = Struct('>b').pack
    def encode(o):
        out = []
        w = out.append
        s1 = o.resource_name.encode()
        n1 = len(s1) + 1
        w(pack_bB(o.resource_type, n1) if n1 < 128 else pack_b(o.resource_type) + string_size(n1))
        w(s1)
        s2 = o.name.encode()
        n2 = len(s2) + 1
        w(BYTES[n2] if n2 < 128 else string_size(n2))
        w(s2)
        s3 = o.value
        if s3 is None:
            s3 = b""
            n3 = 0
        else:
            s3 = s3.encode()
            n3 = len(s3) + 1
        w(BYTES[n3] if n3 < 128 else string_size(n3))
        w(s3)
        if not o.unknown_tags:
            w(b"\0")
        else:
            tags1 = dict(o.unknown_tags or ())
            w(tag_section(tags1))
        return b"".join(out)
    return encode
def _decode_ConfigRecord_0():
    unpack_from_bB = Struct('>bB').unpack_from
    bad = DecodeErrors('ConfigRecord v0', {8: 'resource_name', 11: 'resource_name', 24: 'name', 27: 'name', 40: 'value', 43: 'value', 56: 'ConfigRecord (tagged fields)', 59: 'ConfigRecord'})
    def decode(buf, pos=0):
        if buf.__class__ is not bytes:
            buf = bytes(buf)
        size = len(buf)
        try:
            o = new(ConfigRecord)
            o.unknown_tags = None
            o.resource_type, n1 = unpack_from_bB(buf, pos)
            pos += 2
            if n1 > 127:
                n1, pos = read_uvarint(buf, pos - 1)
                if n1 > 32768:
                    raise bad.long('resource_name', n1 - 1)
            if n1 > 1:
                end = pos + n1 - 1
                if end > size:
                    raise bad.cut('resource_name', end - pos, size - pos)
                o.resource_name = buf[pos:end].decode("utf-8", "replace")
                pos = end
            elif n1 == 1:
                o.resource_name = ""
            else:
                raise bad.null('resource_name')
            n2 = buf[pos]
            pos += 1
            if n2 > 127:
                n2, pos = read_uvarint(buf, pos - 1)
                if n2 > 32768:
                    raise bad.long('name', n2 - 1)
            if n2 > 1:
                end = pos + n2 - 1
                if end > size:
                    raise bad.cut('name', end - pos, size - pos)
                o.name = buf[pos:end].decode("utf-8", "replace")
                pos = end
            elif n2 == 1:
                o.name = ""
            else:
                raise bad.null('name')
            n3 = buf[pos]
            pos += 1
            if n3 > 127:
                n3, pos = read_uvarint(buf, pos - 1)
                if n3 > 32768:
                    raise bad.long('value', n3 - 1)
            if n3 > 1:
                end = pos + n3 - 1
                if end > size:
                    raise bad.cut('value', end - pos, size - pos)
                o.value = buf[pos:end].decode("utf-8", "replace")
                pos = end
            elif n3 == 1:
                o.value = ""
            else:
                o.value = None
            tags1 = buf[pos]
            pos += 1
            if tags1:
                o.unknown_tags, pos = read_tags(buf, pos - 1, bad, 'ConfigRecord')
            return o, pos
        except (IndexError, StructError) as error:
            raise bad.short(error, size) from None
    return decode
def _encode_PartitionRecord_0():
    pack_i16sB = Struct('>i16sB').pack
    pack_i16s = Struct('>i16s').pack
    pack_iiix = Struct('>iiix').pack
    pack_iii = Struct('>iii').pack
    pack_b = Struct('>b').pack
    def encode(o):
        out = []
        w = out.append
        items1 = o.replicas
        n1 = len(items1) + 1
        w(pack_i16sB(o.partition_id, o.topic_id, n1) if n1 < 128 else pack_i16s(o.partition_id, o.topic_id) + uvarint(n1))
        w(pack(f">{len(items1)}i", *items1))
        items2 = o.isr
        n2 = len(items2) + 1
        w(BYTES[n2] if n2 < 128 else uvarint(n2))
        w(pack(f">{len(items2)}i", *items2))
        items3 = o.removing_replicas
        n3 = len(items3) + 1
        w(BYTES[n3] if n3 < 128 else uvarint(n3))
        w(pack(f">{len(items3)}i", *items3))
        items4 = o.adding_replicas
        n4 = len(items4) + 1
        w(BYTES[n4] if n4 < 128 else uvarint(n4))
        w(pack(f">{len(items4)}i", *items4))
        if not o.unknown_tags and o.leader_recovery_state == 0:
            w(pack_iiix(o.leader, o.leader_epoch, o.partition_epoch))
        else:
            w(pack_iii(o.leader, o.leader_epoch, o.partition_epoch))
            tags1 = dict(o.unknown_tags or ())
            if not (o.leader_recovery_state == 0):
                out1 = []
                w1 = out1.append
                w1(pack_b(o.leader_recovery_state))
                tags1[0] = b"".join(out1)
            w(tag_section(tags1))
        return b"".join(out)
    return encode
def _decode_PartitionRecord_0():
    unpack_from_i16sB = Struct('>i16sB').unpack_from
    unpack_from_i = Struct('>i').unpack_from
    unpack_from_iiiB = Struct('>iiiB').unpack_from
    unpack_from_b = Struct('>b').unpack_from
    bad = DecodeErrors('PartitionRecord v0', {10: 'replicas', 13: 'replicas', 25: 'isr', 28: 'isr', 40: 'removing_replicas', 43: 'removing_replicas', 55: 'adding_replicas', 58: 'adding_replicas', 70: 'PartitionRecord (tagged fields)', 74: 'PartitionRecord', 78: 'PartitionRecord', 79: 'PartitionRecord', 84: 'leader_recovery_state'})
    def decode(buf, pos=0):
        if buf.__class__ is not bytes:
            buf = bytes(buf)
        size = len(buf)
        try:
            o = new(PartitionRecord)
            o.directories = []
            o.unknown_tags = o.eligible_leader_replicas = o.last_known_elr = None
            o.leader_recovery_state = 0
            o.partition_id, o.topic_id, n1 = unpack_from_i16sB(buf, pos)
            pos += 21
            if n1 > 127:
                n1, pos = read_uvarint(buf, pos - 1)
                if n1 > 1000001:
                    raise bad.count('replicas', n1 - 1, size - pos)
            n1 -= 1
            if n1 < 0 or n1 * 4 > size - pos:
                raise bad.count('replicas', n1, size - pos)
            end = pos + n1 * 4
            if n1 < 2:
                o.replicas = list(unpack_from_i(buf, pos)) if n1 else []
            else:
                o.replicas = list(unpack_from(f">{n1}i", buf, pos))
            pos = end
            n2 = buf[pos]
            pos += 1
            if n2 > 127:
                n2, pos = read_uvarint(buf, pos - 1)
                if n2 > 1000001:
                    raise bad.count('isr', n2 - 1, size - pos)
            n2 -= 1
            if n2 < 0 or n2 * 4 > size - pos:
                raise bad.count('isr', n2, size - pos)
            end = pos + n2 * 4
            if n2 < 2:
                o.isr = list(unpack_from_i(buf, pos)) if n2 else []
            else:
                o.isr = list(unpack_from(f">{n2}i", buf, pos))
            pos = end
            n3 = buf[pos]
            pos += 1
            if n3 > 127:
                n3, pos = read_uvarint(buf, pos - 1)
                if n3 > 1000001:
                    raise bad.count('removing_replicas', n3 - 1, size - pos)
            n3 -= 1
            if n3 < 0 or n3 * 4 > size - pos:
                raise bad.count('removing_replicas', n3, size - pos)
            end = pos + n3 * 4
            if n3 < 2:
                o.removing_replicas = list(unpack_from_i(buf, pos)) if n3 else []
            else:
                o.removing_replicas = list(unpack_from(f">{n3}i", buf, pos))
            pos = end
            n4 = buf[pos]
            pos += 1
            if n4 > 127:
                n4, pos = read_uvarint(buf, pos - 1)
                if n4 > 1000001:
                    raise bad.count('adding_replicas', n4 - 1, size - pos)
            n4 -= 1
            if n4 < 0 or n4 * 4 > size - pos:
                raise bad.count('adding_replicas', n4, size - pos)
            end = pos + n4 * 4
            if n4 < 2:
                o.adding_replicas = list(unpack_from_i(buf, pos)) if n4 else []
            else:
                o.adding_replicas = list(unpack_from(f">{n4}i", buf, pos))
            pos = end
            o.leader, o.leader_epoch, o.partition_epoch, tags1 = unpack_from_iiiB(buf, pos)
            pos += 13
            if tags1:
                if tags1 > 127:
                    tags1, pos = read_uvarint(buf, pos - 1)
                    if tags1 > 10000:
                        raise bad.tags('PartitionRecord', tags1)
                for _ in range(tags1):
                    tag1, pos = read_uvarint(buf, pos)
                    stop1, pos = read_uvarint(buf, pos)
                    stop1 += pos
                    if stop1 > size:
                        raise bad.cut(f"PartitionRecord (tag {tag1})", stop1 - pos, size - pos)
                    if tag1 == 0:
                        o.leader_recovery_state = unpack_from_b(buf, pos)[0]
                        pos += 1
                        if pos != stop1:
                            raise bad.tag('leader_recovery_state')
                    else:
                        if o.unknown_tags is None:
                            o.unknown_tags = {}
                        o.unknown_tags[tag1] = bytes(buf[pos:stop1])
                        pos = stop1
            return o, pos
        except (IndexError, StructError) as error:
            raise bad.short(error, size) from None
    return decode
FUNCTIONS = {
    ("FeatureLevelRecord", 0, "encode"): _encode_FeatureLevelRecord_0,
    ("FeatureLevelRecord", 0, "decode"): _decode_FeatureLevelRecord_0,
    ("TopicRecord", 0, "encode"): _encode_TopicRecord_0,
    ("TopicRecord", 0, "decode"): _decode_TopicRecord_0,
    ("ConfigRecord", 0, "encode"): _encode_ConfigRecord_0,
    ("ConfigRecord", 0, "decode"): _decode_ConfigRecord_0,
    ("PartitionRecord", 0, "encode"): _encode_PartitionRecord_0,
    ("PartitionRecord", 0, "decode"): _decode_PartitionRecord_0,
}
