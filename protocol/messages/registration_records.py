"""Records of `__cluster_metadata` by which brokers and controllers register, are fenced and leave."""

from __future__ import annotations

from protocol.declare import Message, field, message, nested
from protocol.wire import Array, Bool, Int8, Int16, Int32, Int64, String, UInt16, Uuid


@nested
class BrokerEndpoint(Message):
    name: str = field(String)
    host: str = field(String)
    port: int = field(UInt16)
    security_protocol: int = field(Int16)


@nested
class BrokerFeature(Message):
    name: str = field(String)
    min_supported_version: int = field(Int16)
    max_supported_version: int = field(Int16)


@message(api_key=0, versions="0-4", flexible="0+")
class RegisterBrokerRecord(Message):
    """A broker registers."""

    broker_id: int = field(Int32)
    is_migrating_zk_broker: bool = field(Bool, "2+")
    incarnation_id: bytes = field(Uuid)
    broker_epoch: int = field(Int64)
    end_points: list[BrokerEndpoint] = field(Array(BrokerEndpoint))
    features: list[BrokerFeature] = field(Array(BrokerFeature))
    rack: str | None = field(String, nullable="0+")
    fenced: bool = field(Bool, default=True)
    in_controlled_shutdown: bool = field(Bool, "1+")
    log_dirs: list[bytes] = field(Array(Uuid), "3+", tag=0, tagged="3+")
    cordoned_log_dirs: list[bytes] | None = field(Array(Uuid), "4+", nullable="4+", tag=1, tagged="4+", default=None)


@message(api_key=1, versions="0", flexible="0+")
class UnregisterBrokerRecord(Message):
    """A broker is forgotten."""

    broker_id: int = field(Int32)
    broker_epoch: int = field(Int64)


@message(api_key=7, versions="0", flexible="0+")
class FenceBrokerRecord(Message):
    """A broker is fenced."""

    id: int = field(Int32)
    epoch: int = field(Int64)


@message(api_key=8, versions="0", flexible="0+")
class UnfenceBrokerRecord(Message):
    """A broker is unfenced."""

    id: int = field(Int32)
    epoch: int = field(Int64)


@message(api_key=17, versions="0-3", flexible="0+")
class BrokerRegistrationChangeRecord(Message):
    """A broker's registration changes."""

    broker_id: int = field(Int32)
    broker_epoch: int = field(Int64)
    fenced: int = field(Int8, tag=0, tagged="0+")
    in_controlled_shutdown: int = field(Int8, "1+", tag=1, tagged="1+")
    log_dirs: list[bytes] = field(Array(Uuid), "2+", tag=2, tagged="2+")
    cordoned_log_dirs: list[bytes] | None = field(Array(Uuid), "3+", nullable="3+", tag=3, tagged="3+", default=None)


@nested
class ControllerEndpoint(Message):
    name: str = field(String)
    host: str = field(String)
    port: int = field(UInt16)
    security_protocol: int = field(Int16)


@nested
class ControllerFeature(Message):
    name: str = field(String)
    min_supported_version: int = field(Int16)
    max_supported_version: int = field(Int16)


@message(api_key=27, versions="0", flexible="0+")
class RegisterControllerRecord(Message):
    """A controller registers."""

    controller_id: int = field(Int32)
    incarnation_id: bytes = field(Uuid)
    zk_migration_ready: bool = field(Bool)
    end_points: list[ControllerEndpoint] = field(Array(ControllerEndpoint))
    features: list[ControllerFeature] = field(Array(ControllerFeature))
