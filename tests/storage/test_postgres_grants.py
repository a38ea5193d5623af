"""A role that lacks a right is told which, at the start, and nothing is left half made."""

import psycopg
import pytest

from app.settings import StartRefused
from app.storage.postgres_start import prepare
from tests.real.cluster import shared_cluster

pytestmark = pytest.mark.postgres
FUNCTIONS = ("pg_control_system()", "pg_current_wal_insert_lsn()", "pg_walfile_name(pg_lsn)")


def database_of_a_role(*statements: str) -> str:
    """The URL of a new database for a role of its own, after these statements of its owner."""
    url = shared_cluster().database()
    role = f"role_of_{url.rpartition('/')[2]}"
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute(f"CREATE ROLE {role} LOGIN")
        for statement in statements:
            owner.execute(statement.format(role=role))
    return url.replace("postgres@", f"{role}@")


def test_a_role_that_may_not_create_tables_is_told() -> None:
    url = database_of_a_role("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    with pytest.raises(StartRefused, match=r"permission denied for schema public.*GRANT CREATE, USAGE"):
        prepare(url, allow_weak_durability=False)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_role_that_may_not_call_what_notices_a_failover_is_told(function: str) -> None:
    url = database_of_a_role(
        "GRANT CREATE ON SCHEMA public TO {role}", f"REVOKE EXECUTE ON FUNCTION {function} FROM PUBLIC"
    )
    with pytest.raises(StartRefused, match=r"permission denied for function.*GRANT EXECUTE"):
        prepare(url, allow_weak_durability=False)


def test_with_the_rights_that_are_named_it_starts() -> None:
    revoked = [f"REVOKE EXECUTE ON FUNCTION {function} FROM PUBLIC" for function in FUNCTIONS]
    granted = [f"GRANT EXECUTE ON FUNCTION {function} TO {{role}}" for function in FUNCTIONS]
    url = database_of_a_role(*revoked, "GRANT CREATE, USAGE ON SCHEMA public TO {role}", *granted)
    assert prepare(url, allow_weak_durability=False)["engine"] == "postgresql"
