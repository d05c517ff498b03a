"""`grandbo policy`: what the tenant decides for itself."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grandbo.cli.call import Call, command
from grandbo.cli.output import plain, print_json, say, tell
from grandbo.errors import InvalidInput

if TYPE_CHECKING:
    from grandbo.memory.policies import PolicyInForce

policy = typer.Typer(
    help="What the tenant decides for itself: tiers, roles, expiry, ranking, large scopes.", no_args_is_help=True
)


def register(app: typer.Typer) -> None:
    """Hang the commands in."""
    app.add_typer(policy, name="policy")


@command(policy, "show")
def show(
    call: Call,
    position: Annotated[
        int | None, typer.Option("--position", metavar="P", min=1, help="The one that was in force there.")
    ] = None,
) -> None:
    """Show the policy in force, and since which position it is."""
    with call.memory() as memory:
        _say(call, memory.policy(position=position))


@command(policy, "set", example='grandbo policy set expiry_days={"finding":30} floor=3 --reason "tidy" --tenant acme')
def set_(
    call: Call,
    changes: Annotated[
        list[str], typer.Argument(metavar="FIELD=JSON…", help="What shall be other; `policy show` has the fields.")
    ],
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it stands in the history.")],
    expected_position: Annotated[
        int | None,
        typer.Option("--expected-position", metavar="P", min=1, help="The policy this was decided on; else whichever."),
    ] = None,
    preview: Annotated[bool, typer.Option("--preview", help="Only show what would be in force.")] = False,
) -> None:
    """
    Change fields of the policy and keep all else.

    In `roles`, `expiry_days` and `review_days` only the named keys change. Recall as of a moment goes on using the
    policy of then.
    """
    wanted = dict(_pair(item) for item in changes)
    with call.memory() as memory:
        if preview:
            current, would = memory.preview_policy(wanted, expected_position=expected_position)
            _say(call, replace(current, policy=would or current.policy))
            tell("Nothing was changed." if would else "Nothing would be other than it is.")
            return
        _say(call, memory.change_policy(wanted, reason=reason, expected_position=expected_position))


def _pair(item: str) -> tuple[str, Any]:
    name, equals, value = item.partition("=")
    if not equals:
        raise InvalidInput(f"{plain(item)[:100]}: write FIELD=JSON, such as floor=3.", field="changes")
    try:
        return name, json.loads(value)
    except ValueError:
        if value and value[0].isalpha():
            return name, value  # a plain word is meant as text
        raise InvalidInput(f"{plain(name)[:100]}: what stands after = is not JSON.", field="changes") from None


def _say(call: Call, found: PolicyInForce) -> None:
    if call.json:
        print_json(found.as_dict())
        return
    say(f"In force since position {found.position}, {found.changed_at.isoformat()}")
    for name, value in found.policy.model_dump(mode="json").items():
        say(f"  {name:24} {json.dumps(value)}")
