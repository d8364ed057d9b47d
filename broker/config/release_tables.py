"""What each Apache Kafka release answers to ApiVersions. Written by tools/release_tables.py; do not edit.

A release is (name, APIs, features). APIs are `key:oldest-newest`; a release names those that differ from the one before
it, and `key:gone` those that it no longer has. Features are `name:lowest-highest-default`, all of them.

Source: ApiKeys of kafka-clients and Feature and MetadataVersion of kafka-server-common:
        2.1.1, 2.2.2, 2.3.1, 2.4.1, 2.5.1, 2.6.3, 2.7.2, 2.8.2, 3.0.2, 3.1.2, 3.2.3, 3.3.2, 3.4.1, 3.5.2,
        3.6.2, 3.7.2, 3.8.1, 3.9.1, 4.0.1, 4.1.1, 4.2.0, 4.3.1, 4.4.0
"""

from typing import Final

RELEASES: Final = (
    (
        "2.1",
        "0:0-7 1:0-10 2:0-4 3:0-7 4:0-1 5:0-0 6:0-4 7:0-1 8:0-6 9:0-5 10:0-2 11:0-3 12:0-2 13:0-2 14:0-2 "
        "15:0-2 16:0-2 17:0-1 18:0-2 19:0-3 20:0-3 21:0-1 22:0-1 23:0-2 24:0-1 25:0-1 26:0-1 27:0-0 28:0-2 "
        "29:0-1 30:0-1 31:0-1 32:0-2 33:0-1 34:0-1 35:0-1 36:0-0 37:0-1 38:0-1 39:0-1 40:0-1 41:0-1 42:0-1",
        "",
    ),
    (
        "2.2",
        "2:0-5 4:0-2 5:0-1 6:0-5 7:0-2 11:0-4 36:0-1 43:0-0",
        "",
    ),
    (
        "2.3",
        "1:0-11 3:0-8 8:0-7 11:0-5 12:0-3 14:0-3 15:0-3 23:0-3 44:0-0",
        "",
    ),
    (
        "2.4",
        "0:0-8 3:0-9 4:0-4 5:0-2 6:0-6 7:0-3 8:0-8 9:0-6 10:0-3 11:0-6 12:0-4 13:0-4 14:0-4 15:0-5 16:0-3 "
        "18:0-3 19:0-5 20:0-4 22:0-2 38:0-2 42:0-2 43:0-2 44:0-1 45:0-0 46:0-0 47:0-0",
        "",
    ),
    (
        "2.5",
        "9:0-7 11:0-7 14:0-5 22:0-3 28:0-3 29:0-2 30:0-2 31:0-2 36:0-2 37:0-2 39:0-2 40:0-2 41:0-2",
        "",
    ),
    (
        "2.6",
        "5:0-3 16:0-4 21:0-2 32:0-3 35:0-2 48:0-0 49:0-0",
        "",
    ),
    (
        "2.7",
        "1:0-12 19:0-6 20:0-5 22:0-4 24:0-2 25:0-2 26:0-2 37:0-3 50:0-0 51:0-0 56:0-0 57:0-0",
        "",
    ),
    (
        "2.8",
        "0:0-9 2:0-6 3:0-11 4:0-5 6:0-7 19:0-7 20:0-6 23:0-4 24:0-3 25:0-3 26:0-3 27:0-1 32:0-4 33:0-2 34:0-2 "
        "48:0-1 49:0-1 60:0-0 61:0-0",
        "",
    ),
    (
        "3.0",
        "2:0-7 9:0-8 10:0-4 65:0-0 66:0-0 67:0-0",
        "",
    ),
    (
        "3.1",
        "1:0-13 3:0-12",
        "",
    ),
    (
        "3.2",
        "4:0-6 11:0-9 13:0-5 35:0-3 56:0-1",
        "",
    ),
    (
        "3.3",
        "29:0-3 30:0-3 31:0-3 35:0-4 55:0-1 57:0-1 64:0-0 4:gone 5:gone 6:gone 7:gone 38:gone 39:gone 40:gone "
        "41:gone 50:gone 51:gone 56:gone 67:gone",
        "metadata.version:1-7-7",
    ),
    (
        "3.4",
        "",
        "metadata.version:1-8-8",
    ),
    (
        "3.5",
        "1:0-15 2:0-8 50:0-0 51:0-0",
        "metadata.version:1-11-11",
    ),
    (
        "3.6",
        "24:0-4 38:0-3 39:0-2 40:0-2 41:0-3",
        "metadata.version:1-14-14",
    ),
    (
        "3.7",
        "0:0-10 1:0-16 8:0-9 9:0-9 60:0-1 68:0-0 71:0-0 72:0-0 74:0-0",
        "metadata.version:1-19-19",
    ),
    (
        "3.8",
        "0:0-11 10:0-5 16:0-5 22:0-5 24:0-5 25:0-4 26:0-4 28:0-4 66:0-1 69:0-0 75:0-0",
        "metadata.version:1-20-20",
    ),
    (
        "3.9",
        "1:0-17 2:0-9 10:0-6 18:0-4 55:0-2 80:0-0 81:0-0",
        "metadata.version:1-21-21",
    ),
    (
        "4.0",
        "0:3-12 1:4-17 2:1-10 3:0-13 8:2-9 9:1-9 15:0-6 19:2-7 20:1-6 23:2-4 26:0-5 27:1-1 28:0-5 29:1-3 "
        "30:1-3 31:1-3 32:1-4 34:1-2 35:1-4 38:1-3 39:1-2 40:1-2 41:1-3 57:0-2 60:0-2 68:0-1 69:0-1",
        "metadata.version:7-25-25 kraft.version:0-1-1 transaction.version:0-2-2 group.version:0-1-1 "
        "eligible.leader.replicas.version:0-1-0",
    ),
    (
        "4.1",
        "0:3-13 1:4-18 45:0-1 66:0-2 74:0-1 76:1-1 77:1-1 78:1-1 79:1-1 83:0-0 84:0-0 85:0-0 86:0-0 87:0-0 "
        "90:0-0 91:0-0 92:0-0",
        "metadata.version:7-27-27 kraft.version:0-1-1 transaction.version:0-2-2 group.version:0-1-1 "
        "eligible.leader.replicas.version:0-1-1 share.version:0-1-0",
    ),
    (
        "4.2",
        "2:1-11 8:2-10 9:1-10 27:1-2 78:1-2 79:1-2 80:0-1 85:0-1 87:0-1 88:0-0 89:0-0 90:0-1",
        "metadata.version:7-29-29 kraft.version:0-1-1 transaction.version:0-2-2 group.version:0-1-1 "
        "eligible.leader.replicas.version:0-1-1 share.version:0-1-1 streams.version:0-1-1",
    ),
    (
        "4.3",
        "35:1-5",
        "metadata.version:7-30-30 kraft.version:0-1-1 transaction.version:0-2-2 group.version:0-1-1 "
        "eligible.leader.replicas.version:0-1-1 share.version:0-1-1 streams.version:0-1-1",
    ),
    (
        "4.4",
        "18:0-5 28:0-6 42:0-3 88:0-1 89:0-1 93:0-0 94:0-0",
        "metadata.version:7-33-33 kraft.version:0-1-1 transaction.version:0-2-2 group.version:0-1-1 "
        "eligible.leader.replicas.version:0-1-1 share.version:0-2-2 streams.version:0-1-1",
    ),
)
