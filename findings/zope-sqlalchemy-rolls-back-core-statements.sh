#!/usr/bin/env bash
# Guess: with zope.sqlalchemy, what a registered Session executes is committed by transaction.commit(): an INSERT of a
#   mapped class or of its table makes no difference; only raw connections have to be marked as changed by hand.
# Seen: INSERT and UPDATE of the mapped class are committed. The same statements for its Table (MyClass.__table__), also
#   with RETURNING, are rolled back by a commit() that reports success, unless mark_changed() was called.
# Matters: a handler that writes rows with Core statements, for speed, loses them without an error while the receipt of
#   the message in the same transaction is committed.
# Versions: zope.sqlalchemy 4.1, SQLAlchemy 2.1.9, transaction 5.1, SQLite, Python 3.11.
set -eu
. "$(dirname "$0")/lib.sh"
python_with zope.sqlalchemy==4.1 SQLAlchemy==2.1.9 transaction==5.1
python3 - <<'P' | expect "insert of the class: 1 row
insert of the table: 0 row
insert of the table, returning: 0 row
insert of the table, marked: 1 row
update of the class: 1 row
update of the table: 0 row"
import sqlalchemy as sa
import transaction
import zope.sqlalchemy
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from sqlalchemy.pool import StaticPool


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    number: Mapped[int] = mapped_column(primary_key=True)


TABLE = Order.__table__
CASES = {
    "insert of the class": sa.insert(Order).values(number=1),
    "insert of the table": sa.insert(TABLE).values(number=1),
    "insert of the table, returning": sa.insert(TABLE).values(number=1).returning(TABLE.c.number),
    "insert of the table, marked": sa.insert(TABLE).values(number=1),
    "update of the class": sa.update(Order).values(number=1),
    "update of the table": sa.update(TABLE).values(number=1),
}
for name, statement in CASES.items():
    engine = sa.create_engine("sqlite://", poolclass=StaticPool)
    Base.metadata.create_all(engine)
    if "update" in name:
        with engine.begin() as connection:
            connection.execute(sa.insert(TABLE).values(number=9))
    session = Session(engine)
    zope.sqlalchemy.register(session)
    session.execute(statement)
    if "marked" in name:
        zope.sqlalchemy.mark_changed(session)
    transaction.commit()
    with engine.connect() as connection:
        count = connection.scalar(sa.select(sa.func.count()).where(TABLE.c.number == 1))
    print(f"{name}: {count} row")
P
