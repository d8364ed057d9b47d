"""Generated from protocol/messages/cluster.py by tools/keep_generated.py: do not edit."""
from struct import Struct, pack, unpack_from
from struct import error as StructError
from protocol.codec_support import *
from protocol.messages.cluster import *
new = object.__new__
def _decode_ApiVersionsRequest_3():
    bad = DecodeErrors('ApiVersionsRequest v3', {9: 'client_software_name', 12: 'client_software_name', 25: 'client_software_version', 28: 'client_software_version', 41: 'ApiVersionsRequest (tagged fields)', 44: 'ApiVersionsRequest'})
    def decode(buf, pos=0):
        if buf.__class__ is not bytes:
            buf = bytes(buf)
        size = len(buf)
        try:
            o = new(ApiVersionsRequest)
            o.unknown_tags = o.cluster_id = None
            o.node_id = -1
            n1 = buf[pos]
            pos += 1
            if n1 > 127:
                n1, pos = read_uvarint(buf, pos - 1)
                if n1 > 32768:
                    raise bad.long('client_software_name', n1 - 1)
            if n1 > 1:
                end = pos + n1 - 1
                if end > size:
                    raise bad.cut('client_software_name', end - pos, size - pos)
                o.client_software_name = buf[pos:end].decode("utf-8", "replace")
                pos = end
            elif n1 == 1:
                o.client_software_name = ""
            else:
                raise bad.null('client_software_name')
            n2 = buf[pos]
            pos += 1
            if n2 > 127:
                n2, pos = read_uvarint(buf, pos - 1)
                if n2 > 32768:
                    raise bad.long('client_software_version', n2 - 1)
            if n2 > 1:
                end = pos + n2 - 1
                if end > size:
                    raise bad.cut('client_software_version', end - pos, size - pos)
                o.client_software_version = buf[pos:end].decode("utf-8", "replace")
                pos = end
            elif n2 == 1:
                o.client_software_version = ""
            else:
                raise bad.null('client_software_version')
            tags1 = buf[pos]
            pos += 1
            if tags1:
                o.unknown_tags, pos = read_tags(buf, pos - 1, bad, 'ApiVersionsRequest')
            return o, pos
        except (IndexError, StructError) as error:
            raise bad.short(error, size) from None
    return decode
def _decode_ApiVersionsRequest_4():
    bad = DecodeErrors('ApiVersionsRequest v4', {9: 'client_software_name', 12: 'client_software_name', 25: 'client_software_version', 28: 'client_software_version', 41: 'ApiVersionsRequest (tagged fields)', 44: 'ApiVersionsRequest'})
    def decode(buf, pos=0):
        if buf.__class__ is not bytes:
            buf = bytes(buf)
        size = len(buf)
        try:
            o = new(ApiVersionsRequest)
            o.unknown_tags = o.cluster_id = None
            o.node_id = -1
            n1 = buf[pos]
            pos += 1
            if n1 > 127:
                n1, pos = read_uvarint(buf, pos - 1)
                if n1 > 32768:
                    raise bad.long('client_software_name', n1 - 1)
            if n1 > 1:
                end = pos + n1 - 1
                if end > size:
                    raise bad.cut('client_software_name', end - pos, size - pos)
                o.client_software_name = buf[pos:end].decode("utf-8", "replace")
                pos = end
            elif n1 == 1:
                o.client_software_name = ""
            else:
                raise bad.null('client_software_name')
            n2 = buf[pos]
            pos += 1
            if n2 > 127:
                n2, pos = read_uvarint(buf, pos - 1)
                if n2 > 32768:
                    raise bad.long('client_software_version', n2 - 1)
            if n2 > 1:
                end = pos + n2 - 1
                if end > size:
                    raise bad.cut('client_software_version', end - pos, size - pos)
                o.client_software_version = buf[pos:end].decode("utf-8", "replace")
                pos = end
            elif n2 == 1:
                o.client_software_version = ""
            else:
                raise bad.null('client_software_version')
            tags1 = buf[pos]
            pos += 1
            if tags1:
                o.unknown_tags, pos = read_tags(buf, pos - 1, bad, 'ApiVersionsRequest')
            return o, pos
        except (IndexError, StructError) as error:
            raise bad.short(error, size) from None
    return decode
def _encode_ApiVersionsResponse_3():
    pack_hB = Struct('>hB').pack
    pack_h = Struct('>h').pack
    pack_hhhx = Struct('>hhhx').pack
    pack_hhh = Struct('>hhh').pack
    pack_ix = Struct('>ix').pack
    pack_i = Struct('>i').pack
    pack_Bhhx = Struct('>Bhhx').pack
    pack_hhx = Struct('>hhx').pack
    pack_hh = Struct('>hh').pack
    pack_q = Struct('>q').pack
    pack_t = Struct('>?').pack
    def encode(o):
        out = []
        w = out.append
        items1 = o.api_keys
        n1 = len(items1) + 1
        w(pack_hB(o.error_code, n1) if n1 < 128 else pack_h(o.error_code) + uvarint(n1))
        for o1 in items1:
            if not o1.unknown_tags:
                w(pack_hhhx(o1.api_key, o1.min_version, o1.max_version))
            else:
                if not o1.unknown_tags:
                    w(pack_hhhx(o1.api_key, o1.min_version, o1.max_version))
                else:
                    w(pack_hhh(o1.api_key, o1.min_version, o1.max_version))
                    tags1 = dict(o1.unknown_tags or ())
                    w(tag_section(tags1))
        if not o.unknown_tags and o.supported_features == [] and o.finalized_features_epoch == -1 and o.finalized_features == [] and o.zk_migration_ready == False:
            w(pack_ix(o.throttle_time_ms))
        else:
            w(pack_i(o.throttle_time_ms))
            tags2 = dict(o.unknown_tags or ())
            if not (o.supported_features == []):
                out1 = []
                w1 = out1.append
                items2 = o.supported_features
                n2 = len(items2) + 1
                w1(BYTES[n2] if n2 < 128 else uvarint(n2))
                for o2 in items2:
                    if o2.name == "" and not o2.unknown_tags:
                        w1(pack_Bhhx(1, o2.min_version, o2.max_version))
                    else:
                        s1 = o2.name.encode()
                        n3 = len(s1) + 1
                        w1(BYTES[n3] if n3 < 128 else string_size(n3))
                        w1(s1)
                        if not o2.unknown_tags:
                            w1(pack_hhx(o2.min_version, o2.max_version))
                        else:
                            w1(pack_hh(o2.min_version, o2.max_version))
                            tags3 = dict(o2.unknown_tags or ())
                            w1(tag_section(tags3))
                tags2[0] = b"".join(out1)
            if not (o.finalized_features_epoch == -1):
                out2 = []
                w2 = out2.append
                w2(pack_q(o.finalized_features_epoch))
                tags2[1] = b"".join(out2)
            if not (o.finalized_features == []):
                out3 = []
                w3 = out3.append
                items3 = o.finalized_features
                n4 = len(items3) + 1
                w3(BYTES[n4] if n4 < 128 else uvarint(n4))
                for o3 in items3:
                    if o3.name == "" and not o3.unknown_tags:
                        w3(pack_Bhhx(1, o3.max_version_level, o3.min_version_level))
                    else:
                        s2 = o3.name.encode()
                        n5 = len(s2) + 1
                        w3(BYTES[n5] if n5 < 128 else string_size(n5))
                        w3(s2)
                        if not o3.unknown_tags:
                            w3(pack_hhx(o3.max_version_level, o3.min_version_level))
                        else:
                            w3(pack_hh(o3.max_version_level, o3.min_version_level))
                            tags4 = dict(o3.unknown_tags or ())
                            w3(tag_section(tags4))
                tags2[2] = b"".join(out3)
            if not (o.zk_migration_ready == False):
                out4 = []
                w4 = out4.append
                w4(pack_t(o.zk_migration_ready))
                tags2[3] = b"".join(out4)
            w(tag_section(tags2))
        return b"".join(out)
    return encode
def _encode_ApiVersionsResponse_4():
    pack_hB = Struct('>hB').pack
    pack_h = Struct('>h').pack
    pack_hhhx = Struct('>hhhx').pack
    pack_hhh = Struct('>hhh').pack
    pack_ix = Struct('>ix').pack
    pack_i = Struct('>i').pack
    pack_Bhhx = Struct('>Bhhx').pack
    pack_hhx = Struct('>hhx').pack
    pack_hh = Struct('>hh').pack
    pack_q = Struct('>q').pack
    pack_t = Struct('>?').pack
    def encode(o):
        out = []
        w = out.append
        items1 = o.api_keys
        n1 = len(items1) + 1
        w(pack_hB(o.error_code, n1) if n1 < 128 else pack_h(o.error_code) + uvarint(n1))
        for o1 in items1:
            if not o1.unknown_tags:
                w(pack_hhhx(o1.api_key, o1.min_version, o1.max_version))
            else:
                if not o1.unknown_tags:
                    w(pack_hhhx(o1.api_key, o1.min_version, o1.max_version))
                else:
                    w(pack_hhh(o1.api_key, o1.min_version, o1.max_version))
                    tags1 = dict(o1.unknown_tags or ())
                    w(tag_section(tags1))
        if not o.unknown_tags and o.supported_features == [] and o.finalized_features_epoch == -1 and o.finalized_features == [] and o.zk_migration_ready == False:
            w(pack_ix(o.throttle_time_ms))
        else:
            w(pack_i(o.throttle_time_ms))
            tags2 = dict(o.unknown_tags or ())
            if not (o.supported_features == []):
                out1 = []
                w1 = out1.append
                items2 = o.supported_features
                n2 = len(items2) + 1
                w1(BYTES[n2] if n2 < 128 else uvarint(n2))
                for o2 in items2:
                    if o2.name == "" and not o2.unknown_tags:
                        w1(pack_Bhhx(1, o2.min_version, o2.max_version))
                    else:
                        s1 = o2.name.encode()
                        n3 = len(s1) + 1
                        w1(BYTES[n3] if n3 < 128 else string_size(n3))
                        w1(s1)
                        if not o2.unknown_tags:
                            w1(pack_hhx(o2.min_version, o2.max_version))
                        else:
                            w1(pack_hh(o2.min_version, o2.max_version))
                            tags3 = dict(o2.unknown_tags or ())
                            w1(tag_section(tags3))
                tags2[0] = b"".join(out1)
            if not (o.finalized_features_epoch == -1):
                out2 = []
                w2 = out2.append
                w2(pack_q(o.finalized_features_epoch))
                tags2[1] = b"".join(out2)
            if not (o.finalized_features == []):
                out3 = []
                w3 = out3.append
                items3 = o.finalized_features
                n4 = len(items3) + 1
                w3(BYTES[n4] if n4 < 128 else uvarint(n4))
                for o3 in items3:
                    if o3.name == "" and not o3.unknown_tags:
                        w3(pack_Bhhx(1, o3.max_version_level, o3.min_version_level))
                    else:
                        s2 = o3.name.encode()
                        n5 = len(s2) + 1
                        w3(BYTES[n5] if n5 < 128 else string_size(n5))
                        w3(s2)
                        if not o3.unknown_tags:
                            w3(pack_hhx(o3.max_version_level, o3.min_version_level))
                        else:
                            w3(pack_hh(o3.max_version_level, o3.min_version_level))
                            tags4 = dict(o3.unknown_tags or ())
                            w3(tag_section(tags4))
                tags2[2] = b"".join(out3)
            if not (o.zk_migration_ready == False):
                out4 = []
                w4 = out4.append
                w4(pack_t(o.zk_migration_ready))
                tags2[3] = b"".join(out4)
            w(tag_section(tags2))
        return b"".join(out)
    return encode
def _decode_MetadataRequest_12():
    iter_unpack_16sBB = Struct('>16sBB').iter_unpack
    unpack_from_16sB = Struct('>16sB').unpack_from
    unpack_from_ttB = Struct('>??B').unpack_from
    bad = DecodeErrors('MetadataRequest v12', {9: 'topics', 12: 'topics', 37: 'topics.name', 40: 'topics.name', 53: 'topics (tagged fields)', 56: 'topics', 58: 'MetadataRequest (tagged fields)', 61: 'MetadataRequest'})
    def decode(buf, pos=0):
        if buf.__class__ is not bytes:
            buf = bytes(buf)
        size = len(buf)
        try:
            o = new(MetadataRequest)
            o.unknown_tags = None
            o.include_cluster_authorized_operations = False
            n1 = buf[pos]
            pos += 1
            if n1 > 127:
                n1, pos = read_uvarint(buf, pos - 1)
                if n1 > 1000001:
                    raise bad.count('topics', n1 - 1, size - pos)
            n1 -= 1
            if n1 < 0:
                o.topics = None
            elif n1 * 18 > size - pos:
                raise bad.count('topics', n1, size - pos)
            else:
                o.topics = items1 = []
                add1 = items1.append
                if n1 > 2:
                    for v0, v1, tags in iter_unpack_16sBB(buf[pos:pos + n1 * 18]):
                        if v1 > 1 or tags:
                            break
                        e = new(MetadataRequestTopic)
                        e.topic_id = v0
                        e.name = None if v1 < 1 else ""
                        e.unknown_tags = None
                        add1(e)
                    pos += len(items1) * 18
                    n1 -= len(items1)
                for _ in range(n1):
                    o1 = new(MetadataRequestTopic)
                    o1.unknown_tags = None
                    o1.topic_id, n2 = unpack_from_16sB(buf, pos)
                    pos += 17
                    if n2 > 127:
                        n2, pos = read_uvarint(buf, pos - 1)
                        if n2 > 32768:
                            raise bad.long('topics.name', n2 - 1)
                    if n2 > 1:
                        end = pos + n2 - 1
                        if end > size:
                            raise bad.cut('topics.name', end - pos, size - pos)
                        o1.name = buf[pos:end].decode("utf-8", "replace")
                        pos = end
                    elif n2 == 1:
                        o1.name = ""
                    else:
                        o1.name = None
                    tags1 = buf[pos]
                    pos += 1
                    if tags1:
                        o1.unknown_tags, pos = read_tags(buf, pos - 1, bad, 'topics')
                    add1(o1)
            o.allow_auto_topic_creation, o.include_topic_authorized_operations, tags2 = unpack_from_ttB(buf, pos)
            pos += 3
            if tags2:
                o.unknown_tags, pos = read_tags(buf, pos - 1, bad, 'MetadataRequest')
            return o, pos
        except (IndexError, StructError) as error:
            raise bad.short(error, size) from None
    return decode
def _decode_MetadataRequest_13():
    iter_unpack_16sBB = Struct('>16sBB').iter_unpack
    unpack_from_16sB = Struct('>16sB').unpack_from
    unpack_from_ttB = Struct('>??B').unpack_from
    bad = DecodeErrors('MetadataRequest v13', {9: 'topics', 12: 'topics', 37: 'topics.name', 40: 'topics.name', 53: 'topics (tagged fields)', 56: 'topics', 58: 'MetadataRequest (tagged fields)', 61: 'MetadataRequest'})
    def decode(buf, pos=0):
        if buf.__class__ is not bytes:
            buf = bytes(buf)
        size = len(buf)
        try:
            o = new(MetadataRequest)
            o.unknown_tags = None
            o.include_cluster_authorized_operations = False
            n1 = buf[pos]
            pos += 1
            if n1 > 127:
                n1, pos = read_uvarint(buf, pos - 1)
                if n1 > 1000001:
                    raise bad.count('topics', n1 - 1, size - pos)
            n1 -= 1
            if n1 < 0:
                o.topics = None
            elif n1 * 18 > size - pos:
                raise bad.count('topics', n1, size - pos)
            else:
                o.topics = items1 = []
                add1 = items1.append
                if n1 > 2:
                    for v0, v1, tags in iter_unpack_16sBB(buf[pos:pos + n1 * 18]):
                        if v1 > 1 or tags:
                            break
                        e = new(MetadataRequestTopic)
                        e.topic_id = v0
                        e.name = None if v1 < 1 else ""
                        e.unknown_tags = None
                        add1(e)
                    pos += len(items1) * 18
                    n1 -= len(items1)
                for _ in range(n1):
                    o1 = new(MetadataRequestTopic)
                    o1.unknown_tags = None
                    o1.topic_id, n2 = unpack_from_16sB(buf, pos)
                    pos += 17
                    if n2 > 127:
                        n2, pos = read_uvarint(buf, pos - 1)
                        if n2 > 32768:
                            raise bad.long('topics.name', n2 - 1)
                    if n2 > 1:
                        end = pos + n2 - 1
                        if end > size:
                            raise bad.cut('topics.name', end - pos, size - pos)
                        o1.name = buf[pos:end].decode("utf-8", "replace")
                        pos = end
                    elif n2 == 1:
                        o1.name = ""
                    else:
                        o1.name = None
                    tags1 = buf[pos]
                    pos += 1
                    if tags1:
                        o1.unknown_tags, pos = read_tags(buf, pos - 1, bad, 'topics')
                    add1(o1)
            o.allow_auto_topic_creation, o.include_topic_authorized_operations, tags2 = unpack_from_ttB(buf, pos)
            pos += 3
            if tags2:
                o.unknown_tags, pos = read_tags(buf, pos - 1, bad, 'MetadataRequest')
            return o, pos
        except (IndexError, StructError) as error:
            raise bad.short(error, size) from None
    return decode
def _encode_MetadataResponse_12():
    pack_iB = Struct('>iB').pack
    pack_i = Struct('>i').pack
    pack_hB = Struct('>hB').pack
    pack_h = Struct('>h').pack
    pack_16stB = Struct('>16s?B').pack
    pack_16st = Struct('>16s?').pack
    pack_hiiiB = Struct('>hiiiB').pack
    pack_hiii = Struct('>hiii').pack
    pack_ix = Struct('>ix').pack
    def encode(o):
        out = []
        w = out.append
        items1 = o.brokers
        n1 = len(items1) + 1
        w(pack_iB(o.throttle_time_ms, n1) if n1 < 128 else pack_i(o.throttle_time_ms) + uvarint(n1))
        for o1 in items1:
            s1 = o1.host.encode()
            n2 = len(s1) + 1
            w(pack_iB(o1.node_id, n2) if n2 < 128 else pack_i(o1.node_id) + string_size(n2))
            w(s1)
            s2 = o1.rack
            if s2 is None:
                s2 = b""
                n3 = 0
            else:
                s2 = s2.encode()
                n3 = len(s2) + 1
            w(pack_iB(o1.port, n3) if n3 < 128 else pack_i(o1.port) + string_size(n3))
            w(s2)
            if not o1.unknown_tags:
                w(b"\0")
            else:
                tags1 = dict(o1.unknown_tags or ())
                w(tag_section(tags1))
        s3 = o.cluster_id
        if s3 is None:
            s3 = b""
            n4 = 0
        else:
            s3 = s3.encode()
            n4 = len(s3) + 1
        w(BYTES[n4] if n4 < 128 else string_size(n4))
        w(s3)
        items2 = o.topics
        n5 = len(items2) + 1
        w(pack_iB(o.controller_id, n5) if n5 < 128 else pack_i(o.controller_id) + uvarint(n5))
        for o2 in items2:
            s4 = o2.name
            if s4 is None:
                s4 = b""
                n6 = 0
            else:
                s4 = s4.encode()
                n6 = len(s4) + 1
            w(pack_hB(o2.error_code, n6) if n6 < 128 else pack_h(o2.error_code) + string_size(n6))
            w(s4)
            items3 = o2.partitions
            n7 = len(items3) + 1
            w(pack_16stB(o2.topic_id, o2.is_internal, n7) if n7 < 128 else pack_16st(o2.topic_id, o2.is_internal) + uvarint(n7))
            for o3 in items3:
                items4 = o3.replica_nodes
                n8 = len(items4) + 1
                w(pack_hiiiB(o3.error_code, o3.partition_index, o3.leader_id, o3.leader_epoch, n8) if n8 < 128 else pack_hiii(o3.error_code, o3.partition_index, o3.leader_id, o3.leader_epoch) + uvarint(n8))
                w(pack(f">{len(items4)}i", *items4))
                items5 = o3.isr_nodes
                n9 = len(items5) + 1
                w(BYTES[n9] if n9 < 128 else uvarint(n9))
                w(pack(f">{len(items5)}i", *items5))
                items6 = o3.offline_replicas
                n10 = len(items6) + 1
                w(BYTES[n10] if n10 < 128 else uvarint(n10))
                w(pack(f">{len(items6)}i", *items6))
                if not o3.unknown_tags:
                    w(b"\0")
                else:
                    tags2 = dict(o3.unknown_tags or ())
                    w(tag_section(tags2))
            if not o2.unknown_tags:
                w(pack_ix(o2.topic_authorized_operations))
            else:
                w(pack_i(o2.topic_authorized_operations))
                tags3 = dict(o2.unknown_tags or ())
                w(tag_section(tags3))
        if not o.unknown_tags:
            w(b"\0")
        else:
            tags4 = dict(o.unknown_tags or ())
            w(tag_section(tags4))
        return b"".join(out)
    return encode
def _encode_MetadataResponse_13():
    pack_iB = Struct('>iB').pack
    pack_i = Struct('>i').pack
    pack_hB = Struct('>hB').pack
    pack_h = Struct('>h').pack
    pack_16stB = Struct('>16s?B').pack
    pack_16st = Struct('>16s?').pack
    pack_hiiiB = Struct('>hiiiB').pack
    pack_hiii = Struct('>hiii').pack
    pack_ix = Struct('>ix').pack
    pack_hx = Struct('>hx').pack
    def encode(o):
        out = []
        w = out.append
        items1 = o.brokers
        n1 = len(items1) + 1
        w(pack_iB(o.throttle_time_ms, n1) if n1 < 128 else pack_i(o.throttle_time_ms) + uvarint(n1))
        for o1 in items1:
            s1 = o1.host.encode()
            n2 = len(s1) + 1
            w(pack_iB(o1.node_id, n2) if n2 < 128 else pack_i(o1.node_id) + string_size(n2))
            w(s1)
            s2 = o1.rack
            if s2 is None:
                s2 = b""
                n3 = 0
            else:
                s2 = s2.encode()
                n3 = len(s2) + 1
            w(pack_iB(o1.port, n3) if n3 < 128 else pack_i(o1.port) + string_size(n3))
            w(s2)
            if not o1.unknown_tags:
                w(b"\0")
            else:
                tags1 = dict(o1.unknown_tags or ())
                w(tag_section(tags1))
        s3 = o.cluster_id
        if s3 is None:
            s3 = b""
            n4 = 0
        else:
            s3 = s3.encode()
            n4 = len(s3) + 1
        w(BYTES[n4] if n4 < 128 else string_size(n4))
        w(s3)
        items2 = o.topics
        n5 = len(items2) + 1
        w(pack_iB(o.controller_id, n5) if n5 < 128 else pack_i(o.controller_id) + uvarint(n5))
        for o2 in items2:
            s4 = o2.name
            if s4 is None:
                s4 = b""
                n6 = 0
            else:
                s4 = s4.encode()
                n6 = len(s4) + 1
            w(pack_hB(o2.error_code, n6) if n6 < 128 else pack_h(o2.error_code) + string_size(n6))
            w(s4)
            items3 = o2.partitions
            n7 = len(items3) + 1
            w(pack_16stB(o2.topic_id, o2.is_internal, n7) if n7 < 128 else pack_16st(o2.topic_id, o2.is_internal) + uvarint(n7))
            for o3 in items3:
                items4 = o3.replica_nodes
                n8 = len(items4) + 1
                w(pack_hiiiB(o3.error_code, o3.partition_index, o3.leader_id, o3.leader_epoch, n8) if n8 < 128 else pack_hiii(o3.error_code, o3.partition_index, o3.leader_id, o3.leader_epoch) + uvarint(n8))
                w(pack(f">{len(items4)}i", *items4))
                items5 = o3.isr_nodes
                n9 = len(items5) + 1
                w(BYTES[n9] if n9 < 128 else uvarint(n9))
                w(pack(f">{len(items5)}i", *items5))
                items6 = o3.offline_replicas
                n10 = len(items6) + 1
                w(BYTES[n10] if n10 < 128 else uvarint(n10))
                w(pack(f">{len(items6)}i", *items6))
                if not o3.unknown_tags:
                    w(b"\0")
                else:
                    tags2 = dict(o3.unknown_tags or ())
                    w(tag_section(tags2))
            if not o2.unknown_tags:
                w(pack_ix(o2.topic_authorized_operations))
            else:
                w(pack_i(o2.topic_authorized_operations))
                tags3 = dict(o2.unknown_tags or ())
                w(tag_section(tags3))
        if not o.unknown_tags:
            w(pack_hx(o.error_code))
        else:
            w(pack_h(o.error_code))
            tags4 = dict(o.unknown_tags or ())
            w(tag_section(tags4))
        return b"".join(out)
    return encode
FUNCTIONS = {
    ("ApiVersionsRequest", 3, "decode"): _decode_ApiVersionsRequest_3,
    ("ApiVersionsRequest", 4, "decode"): _decode_ApiVersionsRequest_4,
    ("ApiVersionsResponse", 3, "encode"): _encode_ApiVersionsResponse_3,
    ("ApiVersionsResponse", 4, "encode"): _encode_ApiVersionsResponse_4,
    ("MetadataRequest", 12, "decode"): _decode_MetadataRequest_12,
    ("MetadataRequest", 13, "decode"): _decode_MetadataRequest_13,
    ("MetadataResponse", 12, "encode"): _encode_MetadataResponse_12,
    ("MetadataResponse", 13, "encode"): _encode_MetadataResponse_13,
}
