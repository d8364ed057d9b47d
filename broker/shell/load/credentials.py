"""Users of files: added as the control plane adds them; where Kafka's settings ask who clients are, by a password."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from broker.config.config_values import ConfigError
from broker.shell.control.calls import security
from broker.shell.control.routes import Call
from broker.shell.tls.own_authority import check_user

if TYPE_CHECKING:
    from broker.load.items import UserItem
    from broker.load.problems import Problem
    from broker.shell.cluster_server import ClusterServer

logger = logging.getLogger("momus.load")


def check_user_item(cluster: ClusterServer, user: UserItem) -> Problem | None:
    """What is wrong with a user for this cluster."""
    made = cluster.plan.security
    try:
        check_user(user.name)
    except ConfigError as error:
        return user.where.problem(error.reason, "name")
    asks = any(listener.is_sasl for node in cluster.nodes for listener in node.listeners.values())
    if not asks and (made is None or made.word != "mtls"):
        return user.where.problem("no listener asks who a client is: --security, security= or Kafka's settings do")
    return None


async def add_user(cluster: ClusterServer, user: UserItem) -> bool:
    """Add a user; False: it has no password, and would need one. Errors: RefusedError."""
    made = cluster.plan.security
    if not user.password and (made is None or made.word != "mtls"):
        logger.warning("%s: user %s is not made: it has no password", user.where.text.name, user.name)
        return False
    if made is None:
        await security.set_password(cluster, user.name, user.password)
    else:
        await security.add_user(cluster, Call({}, {}, {"name": user.name, "password": user.password}))
    return True
