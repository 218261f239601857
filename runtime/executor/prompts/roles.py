"""The text that a chat template puts around a message, as pieces of a stream."""

from __future__ import annotations

from sgc.errors import UsageError
from sgc.runtime.executor.interface.capabilities import Capabilities, RoleFormat
from sgc.runtime.executor.run.stream import Piece, PieceKind, StreamState


def begin_role(capabilities: Capabilities, state: StreamState, role: str) -> list[Piece]:
    """Returns the pieces that begin a message; before the first, the default system message."""
    default_system = capabilities.chat.default_system
    if state.roles or role == "system" or not default_system:
        return [_prefix(capabilities, state.roles, role)]
    return [
        _prefix(capabilities, (), "system"),
        Piece(PieceKind.CONSTANT, default_system),
        end_role(capabilities, "system"),
        _prefix(capabilities, ("system",), role),
    ]


def end_role(capabilities: Capabilities, role: str) -> Piece:
    """Returns the piece that ends a message. Raises UsageError for an unknown role."""
    return Piece(PieceKind.ROLE_END, _format(capabilities, role).suffix, role=role)


def _prefix(capabilities: Capabilities, roles: tuple[str, ...], role: str) -> Piece:
    """roles: the roles of the messages begun so far."""
    prefix = _format(capabilities, role).prefix
    if capabilities.chat.system_in_user:
        if role == "system" and not roles:
            prefix = _format(capabilities, "user").prefix + prefix
        elif role == "user" and roles == ("system",):
            prefix = ""
    return Piece(PieceKind.ROLE_BEGIN, prefix, role=role)


def _format(capabilities: Capabilities, role: str) -> RoleFormat:
    roles = capabilities.chat.roles
    if role not in roles:
        known = ", ".join(sorted(roles))
        raise UsageError(
            f"the chat template of {capabilities.model} has no role {role!r}",
            hint=f"it has: {known}",
        )
    return roles[role]
