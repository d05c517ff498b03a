"""
The functions that may take bodies out of the log, of whole streams or at single positions, and the lock between
erasures and receipts that are on their way.

The erasure event at the position is their authority.
"""

from __future__ import annotations

import sqlalchemy as sa

from grandbo.storage.tenancy import TENANT

# Any number that no other advisory lock of ours begins with.
_LOCK_SPACE = 727_001

REMOVE_BODIES = sa.select(
    sa.func.grandbo.remove_bodies(sa.bindparam("position", type_=sa.BigInteger), type_=sa.BigInteger).label("removed")
)
REMOVE_BODIES_AT = sa.select(
    sa.func.grandbo.remove_bodies_at(sa.bindparam("position", type_=sa.BigInteger), type_=sa.BigInteger).label(
        "removed"
    )
)
# A receipt is written after its recall, perhaps by another process: without a lock it could be committed just after an
# erasure has looked for it. Receipts do not keep one another out, and appends take no part in it.
_tenant_key = sa.func.hashtext(sa.cast(TENANT, sa.Text))
LET_RECEIPTS_IN = sa.select(sa.func.pg_advisory_xact_lock_shared(_LOCK_SPACE, _tenant_key).label("held"))
KEEP_RECEIPTS_OUT = sa.select(sa.func.pg_advisory_xact_lock(_LOCK_SPACE, _tenant_key).label("held"))
