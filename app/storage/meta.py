"""What the store remembers about itself, as numbers under a name.

`epoch` and `fence_count` make the next fencing token, `clock_mark` is the largest instant ever committed, and
`identity` (63 random bits) tells one database from another. Fences and the mark move with nearly every commit, so
they are written once for each group of operations, by one statement.
"""

from sqlalchemy import bindparam, case, insert, or_, select, update

from app.storage.statement import Statement
from app.storage.tables import meta

EPOCH = "epoch"
FENCE_COUNT = "fence_count"
CLOCK_MARK = "clock_mark"
IDENTITY = "identity"
# Of the embedded engine's file, see sqlite_custody.py.
STATE = "state"
SESSION = "session"
BEFORE = "session_before"
SETTLED = "session_settled"

numbers = Statement(select(meta.c.name, meta.c.number))
put = Statement(insert(meta).values(name=bindparam("named"), number=bindparam("value")))
change = Statement(update(meta).where(meta.c.name == bindparam("named")).values(number=bindparam("value")))
move_marks = Statement(
    update(meta)
    .where(or_(meta.c.name == FENCE_COUNT, meta.c.name == CLOCK_MARK))
    .values(number=case((meta.c.name == FENCE_COUNT, bindparam("fence_count")), else_=bindparam("clock_mark")))
)
